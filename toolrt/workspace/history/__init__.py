"""The history of files: what changed, by which call, and how to undo it."""
