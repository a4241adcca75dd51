"""What the service does, and what it needs from outside."""
