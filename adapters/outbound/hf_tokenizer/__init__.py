"""Models in Hugging Face's formats: their tokenizer, and what their files say of them."""
