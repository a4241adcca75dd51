"""What is wrong with a command line."""


class UsageError(Exception):
    """The command cannot be followed. The message is one line for whoever typed it, and names the flag."""
