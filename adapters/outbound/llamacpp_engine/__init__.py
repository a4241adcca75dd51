"""llama.cpp in this process: a GGUF file's model, vocabulary and chat template, and an engine that runs it."""
