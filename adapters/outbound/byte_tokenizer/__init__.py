"""A vocabulary of bytes, for engines that have no model."""
