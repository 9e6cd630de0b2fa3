"""Generated batches of tool calls, executed and judged."""
