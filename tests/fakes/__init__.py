"""One fake per port, and small models to serve."""
