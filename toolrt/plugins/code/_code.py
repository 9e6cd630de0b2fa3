"""What is known of a workspace's code, for tools and for programs."""

from __future__ import annotations

import inspect
import math
import os
import sqlite3
from array import array
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

from toolrt import probe
from toolrt.errors import DefinitionRefused
from toolrt.model import LaneChanges, Tool
from toolrt.plugins.code._facts import Facts
from toolrt.plugins.code._graph import Graph
from toolrt.plugins.code._index import Building, FactIndex
from toolrt.plugins.code._languages import LANGUAGES, grammar_of
from toolrt.plugins.code._tools import code_tools
from toolrt.plugins.code._tree import SourceTree
from toolrt.workspace import Workspace

T = TypeVar("T")

#: Gives a vector for each text; sync, then in a worker thread, or async.
Embed = Callable[[list[str]], "Sequence[Sequence[float]] | Awaitable[Sequence[Sequence[float]]]"]

#: How many texts are embedded at once, and how many characters of each.
_EMBEDDED_AT_ONCE = 64
_EMBEDDED_LONGEST = 4000


class CodeIndex:
    """Symbols, calls, imports and text of a workspace, kept up to date with its files.

    What is asked of it is answered from the files as they are then, however far a `build` in the background is; its
    tools claim READ on all of the workspace, so they are ordered with all that changes it.  Nothing is written into the
    workspace.

    Args:
        workspace: whose files.
        embed: gives a vector for each text, all of one length, for search by meaning; None: there is none.  It gets
            pieces of files when they have changed, and the words of each search.
        state_dir: where what is known is kept, as for `Workspace`; use the same.  For files that are not on the real
            disk it is in memory.

    Raises:
        MissingExtra: the ``code`` extra is not installed.
        DefinitionRefused: `workspace` is no workspace, or `embed` no function.

    Example::

        code = plugins.code.CodeIndex(workspace)
        registry = Registry([*workspace.tools(), *code.tools()])
    """

    def __init__(
        self, workspace: Workspace, *, embed: Embed | None = None, state_dir: str | os.PathLike[str] | None = None
    ) -> None:
        if embed is not None and not callable(embed):
            raise DefinitionRefused("CodeIndex(embed)", "a function that gives a vector for each text", embed)
        self._index = FactIndex(workspace, state_dir)
        grammar_of(LANGUAGES["python"])
        self._embed = embed
        self._facts: OrderedDict[tuple[bytes | None, str], Facts] = OrderedDict()

    @property
    def workspace(self) -> Workspace:
        """Whose files it knows."""
        return self._index.workspace

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be known when it last looked, in words."""
        return self._index.notes

    @property
    def problem(self) -> str | None:
        """Why what is known is in memory, for files on the real disk; None: it is not."""
        return self._index.problem

    def tools(self) -> list[Tool]:
        """The tools, from ``list_symbols`` to ``blast_radius``; always the same objects."""
        return list(self._tools)

    @cached_property
    def _tools(self) -> list[Tool]:
        return code_tools(self)

    async def build(self, told: Callable[[Building], None] | None = None) -> int:
        """What is known is what the files are; gives how many files were read.

        Start it in a nursery of your own to have it done while a model thinks.  No answer depends on it: a question
        that comes before it is done waits for it.

        Args:
            told: called now and then with how far it is.

        Raises:
            DefinitionRefused: `embed` gave what is no vector.  What it raises is raised.

        Checkpoint: always.

        Example::

            nursery.start_soon(code.build, print)
        """
        read = await self._index.refresh(told)
        if self._embed is not None:
            await self._embed_missing()
        return read

    async def after_lane(self, changes: LaneChanges) -> None:
        """Read the `changes` of a lane before the next one starts, for ``Services(after_lane=[code.after_lane])``.

        It saves the next answer that time, and decides none.

        Checkpoint: always, if the lane changed something.
        """
        if changes.paths or changes.unknown:
            await self._index.refresh()

    async def ask(
        self,
        question: Callable[[sqlite3.Connection, Graph], T],
        told: Callable[[Any], None] | None = None,
        known: Callable[[str], bool] | None = None,
    ) -> T:
        """What `question` makes of the graph as it is now; it is asked in a worker thread, and must change nothing.

        Args:
            told: called with how far reading is, where something has to be read first.
            known: whether the file of this path may be known to the question; None: every one may.

        Checkpoint: always.
        """
        await self._index.refresh(told)
        files = self._index.files
        if probe.sink is not None:
            probe.sink.access(("code",), False)

        def asked() -> T:
            with self._index.store.connection() as connection:
                connection.execute("BEGIN")
                try:
                    # Facts are a function of content, so it does not matter which question had them loaded.
                    facts = self._facts if probe.threads_inline else OrderedDict(self._facts)
                    here = files if known is None else {path: row for path, row in files.items() if known(path)}
                    answer = question(connection, Graph(SourceTree(connection, here, facts)))
                    self._facts = facts
                    return answer
                finally:
                    connection.execute("COMMIT")

        return await self._index.in_thread(asked)

    # Vectors

    async def vector_of(self, query: str) -> Sequence[float] | None:
        """The vector of a query, when all that is searched has its own; None without `embed`.

        Raises:
            DefinitionRefused: `embed` gave what is no vector.  What it raises is raised.

        Checkpoint: if there is an `embed`.
        """
        if self._embed is None:
            return None
        await self._index.refresh()
        await self._embed_missing()
        return (await self._embedded([query]))[0]

    async def _embedded(self, texts: list[str]) -> list[array[float]]:
        embed: Any = self._embed
        given = (
            embed(texts) if inspect.iscoroutinefunction(embed) else await self._index.in_thread(lambda: embed(texts))
        )
        if inspect.isawaitable(given):
            given = await given
        vectors = []
        try:
            for vector in given:
                numbers = array("f", vector)
                length = math.sqrt(sum(number * number for number in numbers))
                if not numbers or not math.isfinite(length):
                    raise ValueError
                vectors.append(array("f", (number / (length or 1.0) for number in numbers)))
        except (TypeError, ValueError, OverflowError):
            raise DefinitionRefused("embed", "vectors: sequences of finite numbers", type(given).__name__) from None
        if len(vectors) != len(texts):
            raise DefinitionRefused("embed", f"{len(texts)} vectors, one for each text", f"{len(vectors)} vectors")
        return vectors

    async def _embed_missing(self) -> None:
        store = self._index.store
        while True:

            def missing() -> list[tuple[int, str, str]]:
                with store.connection() as connection:
                    return connection.execute(
                        "SELECT piece.id, text.path, text.body FROM piece JOIN text ON text.rowid = piece.id"
                        " LEFT JOIN vector ON vector.piece = piece.id WHERE vector.piece IS NULL ORDER BY piece.id"
                        f" LIMIT {_EMBEDDED_AT_ONCE}"
                    ).fetchall()

            rows = await self._index.in_thread(missing)
            if not rows:
                return
            vectors = await self._embedded([f"{path}\n{body}"[:_EMBEDDED_LONGEST] for _, path, body in rows])
            kept = [(id, vector.tobytes()) for (id, _, _), vector in zip(rows, vectors, strict=True)]

            def keep(kept: list[tuple[int, bytes]] = kept) -> None:
                with store.connection() as connection:
                    connection.executemany("INSERT OR REPLACE INTO vector (piece, numbers) VALUES (?, ?)", kept)

            await self._index.in_thread(keep)

    def close(self) -> None:
        """Let go of what is kept; the caller asks nothing afterwards."""
        self._index.close()

    def __repr__(self) -> str:
        return f"<CodeIndex of {self.workspace.disk.root}>"
