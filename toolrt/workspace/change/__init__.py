"""Changes one file: versions before and after, directories made on the way, what is kept for undo."""
