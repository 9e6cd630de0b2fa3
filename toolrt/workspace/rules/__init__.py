"""Which files a workspace shows, and which changes it permits."""
