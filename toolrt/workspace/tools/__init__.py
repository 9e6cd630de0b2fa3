"""The file tools: each checks its input, works on `Files`, and words its answer."""
