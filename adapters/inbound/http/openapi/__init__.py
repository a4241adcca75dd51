"""What this server says of its own routes."""
