"""The laws as predicates over the story of a batch."""
