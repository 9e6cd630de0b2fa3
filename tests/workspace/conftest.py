"""Trees to work on, alike on the real disk and on the twin."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.workspace._hand import Hand
from toolrt.model import Claim, State
from toolrt.workspace import (
    Directory,
    Disk,
    HardLink,
    Limits,
    MemoryDisk,
    Planted,
    RealDisk,
    Special,
    Symlink,
    Workspace,
)


class Tree:
    """A workspace's directory with a neighbour outside of it, on one of the two disks."""

    #: The absolute path of a directory outside the workspace.
    outside: str

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.workspace = Workspace(disk)

    @property
    def root(self) -> str:
        return self.disk.root

    def put(self, path: str, what: Planted = "", *, mode: int = 0o644) -> None:
        """Plant `what` at `path`, in place of what was there."""
        raise AssertionError("each tree has its own")

    def listing(self, path: str = "") -> list[str]:
        return self.disk.listdir(f"{self.root}/{path}".rstrip("/"))

    def key(self, path: str, state: State | None = None) -> tuple[str, ...] | None:
        return self.workspace.identify(path, state).key


class TwinTree(Tree):
    def __init__(self, content: Mapping[str, Planted] | None = None, **options: Any) -> None:
        self.outside = "/outside"
        self.twin = MemoryDisk(content, root="/home/me/repo", home="/home/me", **options)
        super().__init__(self.twin)
        self.twin.put("/outside", Directory())

    def put(self, path: str, what: Planted = "", *, mode: int = 0o644) -> None:
        self.twin.put(path, what, mode=mode)


class RealTree(Tree):
    def __init__(self, base: Path, content: Mapping[str, Planted] | None = None) -> None:
        base = base.resolve()
        (base / "repo").mkdir()
        (base / "outside").mkdir()
        self.outside = str(base / "outside")
        super().__init__(RealDisk(base / "repo"))
        for path, what in (content or {}).items():
            self.put(path, what)

    def put(self, path: str, what: Planted = "", *, mode: int = 0o644) -> None:
        target = Path(self.root, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink() or (target.exists() and not target.is_dir()):
            target.unlink()
        if isinstance(what, str | bytes):
            target.write_bytes(what.encode() if isinstance(what, str) else what)
            target.chmod(mode)
        elif isinstance(what, Directory):
            target.mkdir(exist_ok=True)
        elif isinstance(what, Symlink):
            target.symlink_to(what.target)
        elif isinstance(what, HardLink):
            target.hardlink_to(Path(self.root, what.target))
        else:
            assert isinstance(what, Special)
            os.mkfifo(target)


@pytest.fixture(params=["real", "twin"])
def tree(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """An empty workspace whose parent is the home directory."""
    if request.param == "twin":
        return TwinTree()
    monkeypatch.setenv("HOME", str(tmp_path))
    return RealTree(tmp_path)


@pytest.fixture
def hand(tree: Tree) -> Hand:
    """Changes files of the tree's workspace."""
    return Hand(tree.workspace)


@pytest.fixture
def twin() -> TwinTree:
    """The twin alone, for what only a twin can be told to do."""
    return TwinTree()


@attrs.frozen
class Context:
    """What a tool uses of the runtime's context."""

    state: State
    claims: tuple[Claim, ...]
    batch_id: str = "batch"
    call_index: int = 0


Call = Callable[..., Any]


@pytest.fixture
def call() -> Call:
    """Calls a file tool as the runtime does: claims first, then the body."""

    async def call(tree: Tree, name: str, *, state: State | None = None, between: Any = None, **input: Any) -> Any:
        tool = next(tool for tool in tree.workspace.tools() if tool.name == name)
        state = State() if state is None else state
        claims = tool.claims_for(input, state)
        if between is not None:
            between()
        return await tool.function(Context(state, claims), **tool.complete(input))

    return call


@pytest.fixture
def mode_of() -> Callable[[Tree, str], int]:
    """The permission bits of a file."""
    return lambda tree, path: stat.S_IMODE(tree.disk.lstat(f"{tree.root}/{path}").mode)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state directory of the workspaces that are `opened`."""
    return tmp_path / "state"


@pytest.fixture
def opened(root: Path, state: Path) -> Callable[..., Workspace]:
    """Opens a workspace on the test's `root` as a new process would, with these limits."""
    return lambda **limits: Workspace(root, state_dir=state, limits=Limits(**limits))
