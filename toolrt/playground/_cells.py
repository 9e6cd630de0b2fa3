"""Runs the cells of a lesson, one after the other, in one module: what a kernel does for a notebook.

Rules.
    1. What a prediction compares with leaves this module only beside a guess: the page has nothing to show before.
    2. The value of a cell's last expression is shown by what it is: a page, a picture, a grade, rows, or a text.
    3. A cell that awaits runs in asyncio, until a cell says ``%autoawait trio``.  The clock jumps: what a text says of
       seconds comes so on a slow machine, too.

Limits.  There are no data frames and no charts: a `ShownTable` stands in for both.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import selectors
import sys
from collections.abc import Coroutine, Iterable, Mapping
from pprint import pformat
from types import ModuleType
from typing import Any
from unittest import mock

import trio
import trio.testing

from toolrt import view
from toolrt.teaching import lab
from toolrt.trace import stable_text

Answer = dict[str, Any]


class ShownTable(list[Mapping[str, Any]]):
    """Rows by column, in place of a data frame or a chart; it takes the same arguments."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], *_: Any, **how_to_draw: Any) -> None:
        super().__init__(rows)

    def round(self, digits: int) -> ShownTable:
        """Give the same with shorter numbers."""
        return ShownTable(
            {name: round(value, digits) if isinstance(value, float) else value for name, value in row.items()}
            for row in self
        )

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(dict.fromkeys(name for row in self for name in row))

    def texts(self) -> list[list[str]]:
        """Give the rows as they are shown."""
        found = [[row.get(name, "") for name in self.columns] for row in self]
        return [[value if isinstance(value, str) else stable_text(value) for value in row] for row in found]


class Cells:
    """The cells of one lesson, from the first one on."""

    def __init__(self) -> None:
        self._module = sys.modules["lesson"] = ModuleType("lesson")
        self._in_trio = False

    def run(self, source: str, file: str, guess: str | None, first: str | None) -> Answer:
        """Run a cell, and give what it printed and what its value shows.

        Args:
            source: the cell.
            file: where it is written, so that its lines can be told.
            guess: what the reader answers if the cell asks for a prediction.
            first: the reader's first answer to it, which may be one of an earlier day.
        """
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), mock.patch.multiple(view, frame=ShownTable, plot=ShownTable):
            self._execute(source, file)
        return {"printed": printed.getvalue()} | _shown(vars(self._module).pop("_", None), guess, first)

    def _execute(self, source: str, file: str) -> None:
        self._in_trio |= source.startswith("%autoawait trio")
        # Lines that are commands of IPython stay, as empty ones: messages name the numbers of the others.
        tree = ast.parse("\n".join("" if line.startswith("%") else line for line in source.splitlines()), file)
        if tree.body and isinstance(last := tree.body[-1], ast.Expr):
            tree.body[-1] = ast.copy_location(ast.Assign([ast.Name("_", ast.Store())], last.value), last)
            ast.fix_missing_locations(tree)
        code = compile(tree, file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        begun = eval(code, vars(self._module))
        if inspect.iscoroutine(begun):
            _run(begun, self._in_trio)


def _run(begun: Coroutine[Any, Any, None], in_trio: bool) -> None:
    async def awaited() -> None:
        await begun

    if in_trio:
        trio.run(awaited, clock=trio.testing.MockClock(autojump_threshold=0))
        return
    # A page has a loop of its own, which always runs, and in which no call can wait.
    of_page = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    jumps = _Jumps()
    loop = asyncio.SelectorEventLoop(jumps)
    loop.time = lambda: jumps.now  # type: ignore[method-assign]
    try:
        loop.run_until_complete(begun)
    finally:
        loop.close()
        asyncio._set_running_loop(of_page)


class _Jumps(selectors.DefaultSelector):
    """Does not wait: `now`, in seconds, moves on by what was to be waited for."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += timeout or 0
        return super().select(0)


def _shown(value: Any, guess: str | None, first: str | None) -> Answer:
    """Say what a page shows for the value of a cell."""
    match value:
        case None:
            return {}
        case lab.Prediction():
            return _asked(value, guess, first)
        case lab.Grade():
            graded = {"exercise": value.exercise, "status": value.status.name, "text": str(value)}
            wrong = [one for one in value.findings if not one.good and one.evidence is not None]
            return graded | ({"page": value.show().html} if wrong else {})
        case view.Page():
            return {"page": value.html}
        case view.Svg():
            return {"picture": str(value), "label": value.label}
        case ShownTable():
            return {"columns": value.columns, "rows": value.texts()}
    return {"text": pformat(value, width=100)}


def _asked(asks: lab.Prediction, guess: str | None, first: str | None) -> Answer:
    """Compare a guess, beside the first one; without one nothing of what came is told."""
    found: Answer = {"question": asks.question}
    for said in (first, guess):
        if said is not None:
            with contextlib.suppress(ValueError, SyntaxError):
                said = ast.literal_eval(said)
            asks = lab.Prediction(asks.question, said, asks.came)
            found |= {"text": str(asks).partition("\n")[2].strip(), "right": asks.right}
    return found
