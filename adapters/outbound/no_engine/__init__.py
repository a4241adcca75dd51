"""Where there is none."""
