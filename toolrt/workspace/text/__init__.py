"""Turns a file's bytes into text: encoding, line endings, and how much of it an answer holds."""
