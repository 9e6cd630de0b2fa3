"""The child of the kill test: edits files in a loop until it is killed.

Each content says its number and is as long as to be seen when it is cut; what was written last is a whole version.
"""

from __future__ import annotations

import os
from multiprocessing.connection import Connection
from types import SimpleNamespace

import trio

from toolrt.model import EVERYTHING, State
from toolrt.workspace import Wanted, Workspace

#: How long a content is, in bytes; some blocks of a disk, so that writing it takes a moment.
SIZE = 40_000


def content(number: int) -> bytes:
    """The content of this number."""
    return (b"%08d" % number) * (SIZE // 8)


def tell_variable(name: str, told: Connection[str, str]) -> None:
    """Send the value that a variable has in this process."""
    told.send(os.environ[name])


def edit_until_killed(root: str, state: str, start: int, ready: Connection[str, str]) -> None:
    """Edit for ever, and send one message once that has begun."""
    trio.run(_edit, root, state, start, ready)


async def _edit(root: str, state: str, start: int, ready: Connection[str, str]) -> None:
    workspace = Workspace(root, state_dir=state)
    assert workspace.history.problem is None, workspace.history.problem
    ready.send("ready")

    async def edit(batch: int, index: int, path: str, number: int) -> None:
        context = SimpleNamespace(batch_id=f"b{batch}", call_index=index, state=State(), claims=(EVERYTHING,))
        await workspace.files.revise(context, workspace.identify(path), lambda found: content(number))

    number = start
    while True:
        number += 1
        async with trio.open_nursery() as nursery:
            # Files of their own, a file with two names, and one that comes and goes.
            nursery.start_soon(edit, number, 0, "a", number)
            nursery.start_soon(edit, number, 1, "d/b", number)
            nursery.start_soon(edit, number, 2, "linked", number)
        context = SimpleNamespace(batch_id=f"b{number}", call_index=3, state=State(), claims=(EVERYTHING,))
        both = [(workspace.identify(path), lambda found, number=number: content(number)) for path in ("x/one", "y/two")]
        await workspace.files.revise_all(context, both)
        if number % 3 == 0:
            await workspace.files.remove(context, workspace.identify("d", None, Wanted.ENTRY), recursive=True)
