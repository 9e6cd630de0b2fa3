"""Walks the tree, and searches names and contents."""
