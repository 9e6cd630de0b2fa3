"""What the benchmarks on a real tree share: the tree, and how medians and ratios are told."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

#: What counts as text.
TEXTS = frozenset((".py", ".pyi", ".c", ".h", ".cpp", ".hpp", ".js", ".ts", ".md", ".rst", ".txt", ".toml", ".json"))


def timed(work: Callable[[], Any]) -> float:
    """Seconds it took."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def linked(root: Path, copy: Path, most: int) -> None:
    """The first files of the tree that are source or text, under other names of the same files where that goes."""
    count = 0
    for directory, below, names in os.walk(root):
        below.sort()
        for name in sorted(names):
            path = Path(directory) / name
            if path.suffix not in TEXTS or path.is_symlink() or count >= most:
                continue
            target = copy / path.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path, target)
            except OSError:
                shutil.copy2(path, target)
            count += 1


def python_files(root: Path) -> Iterator[Path]:
    """The Python files of a tree."""
    for directory, below, names in os.walk(root):
        below.sort()
        for name in sorted(names):
            if name.endswith(".py") and os.path.getsize(os.path.join(directory, name)) <= 1024 * 1024:
                yield Path(directory) / name


def ms(rounds: list[float]) -> float:
    """The median in milliseconds."""
    return round(statistics.median(rounds) * 1000, 1)


def ratio(rounds: list[float], others: list[float]) -> float:
    """The ratio of both medians."""
    return float(f"{statistics.median(rounds) / statistics.median(others):.2g}")


def told(what: str, rows: dict[str, list[float]], own: str) -> dict[str, Any]:
    """A row of medians, and the ratios to the first."""
    said: dict[str, Any] = {"what": what}
    said.update({f"{name} ms": ms(rounds) for name, rounds in rows.items() if rounds})
    said.update({f"to {name}": ratio(rows[own], rounds) for name, rounds in rows.items() if rounds and name != own})
    return said
