"""What the tests of agent frameworks' adapters share: tools that need their order, and what shows it."""

import asyncio
from collections.abc import Sequence

from hypothesis import strategies as st

from toolrt import WRITE, aio

#: How often each call lets the event loop go on before it ends: these draw the order in which calls end.
PAUSES = st.lists(st.integers(0, 40), min_size=6, max_size=6)


#: What `Files.edit` touches.
OF_PATH = {"path": WRITE}


def edits_in_order() -> aio.CallOrder:
    """An order in which edits of one path keep call order, and ``look`` runs at any time."""
    return aio.CallOrder(safe=["look"], claims={"edit": OF_PATH})


class Files:
    """Texts by path, and an edit that loses another one where the two overlap."""

    def __init__(self, pauses: Sequence[int] = (0,)) -> None:
        self.texts: dict[str, str] = {}
        self.started: list[int] = []
        self.running = 0
        self.most_at_once = 0
        self._pauses = pauses

    async def edit(self, path: str, number: int) -> str:
        """Append the call's number to the text at `path`, with pauses between reading and writing."""
        self.started.append(number)
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            text = self.texts.get(path, "")
            for _ in range(self._pauses[number % len(self._pauses)]):
                await asyncio.sleep(0)
            self.texts[path] = text + str(number)
        finally:
            self.running -= 1
        return f"{path}{number}"


class Pair:
    """Two calls that wait for each other: where they do not overlap, neither of them ends."""

    def __init__(self) -> None:
        self._barrier = asyncio.Barrier(2)

    async def look(self) -> str:
        """Wait for the other call."""
        async with asyncio.timeout(10):
            await self._barrier.wait()
        return "seen"


class Endless:
    """A tool that only a cancel ends, and what its calls did."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.begun = asyncio.Event()

    async def work(self, name: str) -> str:
        """Work until the call is cancelled."""
        self.seen.append(f"{name} begins")
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            try:
                await asyncio.sleep(0)  # a tool may take time to end, and be cancelled once more meanwhile
            finally:
                self.seen.append(f"{name} ended")
        return name
