"""The core by itself: plain values in, plain values out."""
