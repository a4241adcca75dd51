"""llama.cpp with a real model: skipped where it is not to be had, on Python 3.11."""
