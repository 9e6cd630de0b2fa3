"""The durable record of changes: segments, the index over them, and recovery when a workspace opens."""
