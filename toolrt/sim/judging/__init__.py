"""Judges histories of concurrent operations, and sets of outcomes."""
