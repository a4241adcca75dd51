"""The same requests to Northbound and, once, to vLLM's Python frontend: every field, frame by frame."""
