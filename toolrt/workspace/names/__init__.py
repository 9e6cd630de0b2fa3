"""Names: how a path is checked, walked and shown, and which file it identifies."""
