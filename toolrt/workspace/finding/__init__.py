"""Walking the tree, and searching names and contents."""
