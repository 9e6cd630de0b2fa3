"""The example, copies of it, and ways to call the command."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from toolrt.cli import main

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@attrs.frozen
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


class Command:
    """The command ``toolrt``, in this process and in one of its own."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Ended:
        """Call it in this process."""
        self._capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        printed = self._capsys.readouterr()
        return Ended(code, printed.out, printed.err)

    def spawned(
        self, *arguments: object, env: Mapping[str, str] | None = None, given: bytes = b"", cwd: Path | None = None
    ) -> Ended:
        """Call it in a process of its own."""
        done = subprocess.run(
            [sys.executable, "-m", "toolrt", *map(str, arguments)],
            input=given,
            capture_output=True,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            timeout=100,
            check=False,
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def toolrt(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command."""
    return Command(capsys)


@pytest.fixture
def response() -> Path:
    """The example's response."""
    return EXAMPLES / "response.json"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A copy of the example's directory."""
    return copied_shop(tmp_path / "shop")


@pytest.fixture
def explored(toolrt: Command, response: Path, shop: Path) -> Callable[..., Ended]:
    """Explores the example's response on a copy of its directory, with more options."""
    return lambda *options: toolrt("explore", response, "--workspace", shop, *options)


def copied_shop(to: Path) -> Path:
    shutil.copytree(EXAMPLES / "shop", to, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    return to


@pytest.fixture
def tree() -> Callable[[Path], dict[str, str]]:
    """Gives everything below a directory: contents, links, modes."""

    def look(root: Path) -> dict[str, str]:
        found = {}
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.is_symlink():
                found[name] = f"-> {os.readlink(path)}"
            elif path.is_file():
                found[name] = f"{path.stat().st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
            else:
                found[name] = f"{path.stat().st_mode:o}"
        return found

    return look


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Writes a list of calls, given as pairs of a tool's name and its input, to a response file."""

    def write(*calls: tuple[str, Any], name: str = "calls.json") -> Path:
        path = tmp_path / name
        path.write_text(json.dumps([{"name": tool, "input": given} for tool, given in calls]))
        return path

    return write
