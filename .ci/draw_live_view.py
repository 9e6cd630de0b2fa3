"""Draw ``docs/images/live-view.svg``: what `toolrt run` shows of a batch on a terminal, from a live one.

    python .ci/draw_live_view.py [OUT]

The batch runs in virtual time on a real pseudo-terminal; the picture is what an emulator shows after three seconds.
"""

from __future__ import annotations

import os
import re
import sys
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import trio  # noqa: E402
import trio.testing  # noqa: E402

from tests.cli._terminal import Window, window  # noqa: E402
from toolrt import Allow, Claim, Mode, Registry, Runtime, ToolCall, tool  # noqa: E402
from toolrt.cli.commands._run import perform  # noqa: E402
from toolrt.cli.screen import _board  # noqa: E402
from toolrt.cli.screen._screen import Screen  # noqa: E402

COLUMNS, ROWS = 84, 18
CELL, LINE = 8.4, 19
FONTS = "ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace"

#: What terminals call colours, on the dark ground of this picture.
COLOURS = {
    "default": "#d6deeb",
    "green": "#7fd88f",
    "red": "#ff7b72",
    "yellow": "#e3b341",
    "brown": "#e3b341",
    "cyan": "#6cc7dd",
}


def claims(mode: Mode) -> Any:
    return lambda input, state: (Claim(("file", input["path"]), mode),)


@tool(claims=claims(Mode.WRITE))
async def edit_file(ctx: Any, path: str, seconds: float = 0.2) -> str:
    """Edits slowly."""
    await trio.sleep(seconds)
    return "replaced 1 place"


@tool(claims=claims(Mode.READ), safe=True)
async def read_file(ctx: Any, path: str) -> str:
    """Reads at once."""
    return "x" * 4_000


@tool(safe=True)
async def fetch(ctx: Any, url: str, pages: int) -> None:
    """Says how far it is."""
    for number in range(pages):
        ctx.progress({"progress": number, "total": pages, "message": f"page {number}"})
        await trio.sleep(0.1)


@tool
async def run_command(ctx: Any, command: str) -> None:
    """Takes long."""
    await trio.sleep(100)


CALLS = [
    *[("read_file", {"path": f"src/part_{number}.py"}) for number in range(6)],
    ("fetch", {"url": "https://example.org/manual", "pages": 50}),
    ("fetch", {"url": "https://example.org/faq", "pages": 35}),
    ("edit_file", {"path": "src/shop/cart.py", "seconds": 60}),
    ("edit_file", {"path": "src/shop/cart.py"}),
    ("read_file", {"path": "src/shop/cart.py"}),
    ("edit_file", {"path": "secrets/keys.env"}),
    ("fetch", {"url": "https://example.org/index", "pages": 80}),
    ("edit_file", {"path": "docs/index.md"}),
    ("no_such_tool", {}),
    ("run_command", {"command": "make test"}),
    ("edit_file", {"path": "CHANGES.md"}),
]


async def approve(request: Any) -> Any:
    """Nobody answers about secrets."""
    if "secrets" in str(request.input):
        await trio.sleep(100)
    return Allow()


def live() -> list[list[tuple[str, str, bool]]]:
    """Each row of the terminal, as texts with a colour, and whether they are bold."""
    os.environ.update(TERM="linux")
    for name in ("CI", "NO_COLOR", "COLUMNS", "LINES"):
        os.environ.pop(name, None)
    _board._SHARE = 0
    calls = [ToolCall(str(number), name, input) for number, (name, input) in enumerate(CALLS)]
    registry = Registry([edit_file, read_file, fetch, run_command])

    async def main() -> list[list[tuple[str, str, bool]]]:
        async with trio.open_nursery() as nursery:
            screen = Screen(shown.stream)
            nursery.start_soon(perform, Runtime(registry, limit=5, approve=approve), calls, screen)
            # Time is virtual, reading is not: a terminal that is full takes only a part of a picture.
            await trio.sleep(0.05)
            for _ in range(30):
                await trio.sleep(0.1)
                shown.shows()
            found = rows_of(shown)
            nursery.cancel_scope.cancel()
            return found

    with window(COLUMNS, ROWS) as shown:
        return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def rows_of(shown: Window) -> list[list[tuple[str, str, bool]]]:
    """The rows as they are, neighbours that look alike joined."""
    found = []
    for number, _ in enumerate(shown.rows()):
        row: list[tuple[str, str, bool]] = []
        for column in range(COLUMNS):
            cell = shown.screen.buffer[number][column]
            if row and row[-1][1:] == (cell.fg, cell.bold):
                row[-1] = (row[-1][0] + cell.data, *row[-1][1:])
            else:
                row.append((cell.data, cell.fg, cell.bold))
        found.append(row)
    return found


def drawn(rows: list[list[tuple[str, str, bool]]]) -> str:
    """The rows as SVG."""
    width, height = round(COLUMNS * CELL + 32), len(rows) * LINE + 32
    title = "toolrt run on a terminal: lanes, bars, who waits for whom and why"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">',
        f"<title>{title}</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#14191f"/>',
        f'<g font-family="{FONTS}" font-size="14">',
    ]
    for number, row in enumerate(rows):
        column = 0
        for text, colour, bold in row:
            weight = ' font-weight="bold"' if bold else ""
            fill = COLOURS.get(colour, COLOURS["default"])
            for word in re.finditer(r"\S+(?: \S+)*", text):
                x, y = 16 + (column + word.start()) * CELL, 16 + number * LINE + 14
                shape = f'x="{x:.1f}" y="{y}" fill="{fill}"{weight} textLength="{len(word[0]) * CELL:.1f}"'
                lines.append(f"<text {shape}>{escape(word[0])}</text>")
            column += len(text)
    return "\n".join([*lines, "</g>", "</svg>", ""])


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/images/live-view.svg"
    out.write_text(drawn(live()), encoding="utf-8")
