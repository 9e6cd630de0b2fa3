"""The door for asyncio: batches of Trio's runtime, awaited by asyncio tasks.

A guest Trio run inside the event loop, in its own thread, runs the batches: see `toolrt.aio._guest`.
"""

from toolrt.aio._batch import AsyncioBatch, call, open_batch, resume, run
from toolrt.aio._bridge import on_loop, tool
from toolrt.aio._guest import close
from toolrt.aio._order import BehindApproval, CallOrder, PlacedCall

__all__ = [
    "AsyncioBatch",
    "BehindApproval",
    "CallOrder",
    "PlacedCall",
    "call",
    "close",
    "on_loop",
    "open_batch",
    "resume",
    "run",
    "tool",
]
