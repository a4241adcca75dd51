"""What a generation is: values and pure rules. No framework, no codec, no clock, no await."""
