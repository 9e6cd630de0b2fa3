"""What the terminal shows: painting, escaping, and the board of a running batch."""
