"""The services over a scripted engine and a vocabulary of bytes: requests in, generations out."""
