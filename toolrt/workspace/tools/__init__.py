"""The file tools: each checks its input, calls `Files`, and words its answer."""
