"""What a file's bytes mean as text: encoding, line endings, and how much of it an answer holds."""
