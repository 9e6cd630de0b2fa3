"""Dynamic partial-order reduction: the tree of choices, races found in an execution, and backtrack points."""
