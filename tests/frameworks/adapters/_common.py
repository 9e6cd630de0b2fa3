"""What adapters share: the kit's tools as typed functions, and the order in which calls are handed to a fake model."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

Answers = list[tuple[str, Any, bool]]


def function_of(tool: Any) -> Callable[..., Any]:
    """Make the function that a user would write: typed, documented, async."""
    if "path" in tool.schema["properties"]:

        async def function(note: str, path: str) -> str:
            return await tool(note=note, path=path)

    else:

        async def function(note: str) -> str:  # type: ignore[misc]
            return await tool(note=note)

    function.__name__ = function.__qualname__ = tool.name
    function.__doc__ = tool.description
    return function


def blocking_of(tool: Any, loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
    """The same as a plain function, for a worker thread: it waits for what the tool does on the loop."""

    def run(**input: str) -> str:
        return asyncio.run_coroutine_threadsafe(tool(**input), loop).result()

    if "path" in tool.schema["properties"]:

        def function(note: str, path: str) -> str:
            return run(note=note, path=path)

    else:

        def function(note: str) -> str:  # type: ignore[misc]
            return run(note=note)

    function.__name__ = function.__qualname__ = tool.name
    function.__doc__ = tool.description
    return function


def turns(calls: list[Any], one_a_turn: bool) -> Iterator[list[Any]]:
    """Give the calls that the model asks for in each turn, then nothing: all in the first, or one in each."""
    yield from ([call] for call in calls) if one_a_turn else [calls]
    while True:
        yield []
