"""What was changed, by which call, and how to undo it."""
