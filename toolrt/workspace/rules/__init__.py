"""Rules: which files a workspace shows, and which changes it permits."""
