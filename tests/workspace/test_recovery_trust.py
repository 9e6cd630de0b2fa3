"""A start believes nothing that stands in the tree: it mends what this user's toolrt left, and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from tests.workspace._crash import LONG, OLD, left_by
from toolrt.workspace import FileProblem, MemoryDisk, RealDisk, Workspace, state_directory

#: What a forged copy would put in the place of its victim.
FORGED = b"forged " * 100

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc/self/io counts what is read")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace's directory with a victim beside it; the state directory is private and elsewhere."""
    monkeypatch.setenv("TOOLRT_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "repo" / "d").mkdir(parents=True)
    (tmp_path / "repo" / "readme").write_text("hello\n")
    (tmp_path / "victim").write_bytes(VICTIM)
    return tmp_path / "repo"


VICTIM = b"precious " * 100


def forged(name: str, inode: int, old: bytes = FORGED, new: bytes = VICTIM[:9] + FORGED[9:]) -> bytes:
    """A recovery copy as earlier versions of toolrt wrote them, which believed them."""
    head = {"name": name, "inode": inode, "old": len(old), "new": len(new)}
    return json.dumps(head).encode().ljust(4095) + b"\n" + old + new


def half(path: Path) -> int:
    """The file at `path` is what a broken write of `forged` would have left; its number."""
    path.write_bytes((VICTIM[:9] + FORGED[9:])[:50] + FORGED[50:])
    return os.stat(path).st_ino


def run_read_file(root: Path) -> subprocess.CompletedProcess[str]:
    """``toolrt run`` of one read_file, in a process of its own."""
    calls = json.dumps([{"id": "1", "name": "read_file", "input": {"path": "readme"}}])
    command = [sys.executable, "-m", "toolrt", "run", "-", "--workspace", str(root)]
    ended = subprocess.run(command, input=calls, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended


def bytes_read(work: Callable[[], object]) -> int:
    """How many bytes this process reads while it does `work`."""

    def count() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    before = count()
    work()
    return count() - before


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.parametrize("where", ["absolute", "above", "in the midst", "beside"])
def test_forged_recovery_copy_changes_no_file(root: Path, tmp_path: Path, where: str) -> None:
    """A copy that names a file anywhere, with its number and content, is left alone and reported; so is the file."""
    victim = root / "d" / "plain" if where == "beside" else tmp_path / "victim"
    inode = half(victim)
    before = victim.read_bytes()
    names = {
        "absolute": str(victim),
        "above": "../../victim",
        "in the midst": "x/../../../victim",
        "beside": "plain",
    }
    (root / "d" / "x").mkdir()
    copy = root / "d" / ".toolrt-1-2-3.undo"
    copy.write_bytes(forged(names[where], inode))
    ended = run_read_file(root)
    assert victim.read_bytes() == before
    assert copy.read_bytes() == forged(names[where], inode)
    assert "d/.toolrt-1-2-3.undo" in ended.stderr
    assert "hello" in ended.stdout
    assert "toolrt-1-2-3" not in ended.stdout


@pytest.mark.parametrize("name", ["\0", "", ".", "..", "/", "a\0b", "\ud800", "x" * 5000, 7, None, ["victim"]])
def test_forged_copy_with_a_name_that_is_none_is_left_alone(root: Path, name: object) -> None:
    """Whatever a forged head says, a start goes on, and the copy stays."""
    head = json.dumps({"name": name, "inode": os.stat(root / "readme").st_ino, "old": 3, "new": 3}).encode()
    copy = root / ".toolrt-1-2-3.undo"
    copy.write_bytes(head.ljust(4095) + b"\noldnew")
    workspace = Workspace(root)
    assert workspace.left_alone == (copy.name,)
    assert copy.exists()
    assert (root / "readme").read_text() == "hello\n"


def test_names_that_a_repository_brings_are_not_deleted(root: Path) -> None:
    """A file, a directory, a link and a pipe of such names are all there after the start."""
    (root / ".toolrt-notes.tmp").write_text("mine")
    (root / "d" / ".toolrt-dir.tmp" / "sub").mkdir(parents=True)
    (root / "d" / ".toolrt-link.undo").symlink_to("/etc/passwd")
    os.mkfifo(root / "d" / ".toolrt-pipe.undo")
    (root / "d" / ".toolrt-0123456789abcdef-0123456789abcdef0123456789abcdef.tmp").write_text("like ours")
    before = sorted(str(path) for path in root.rglob("*"))
    workspace = Workspace(root)
    assert sorted(str(path) for path in root.rglob("*")) == before
    assert len(workspace.left_alone) == 5
    assert workspace.left_alone == tuple(workspace.disk.strangers())


@linux_only
def test_start_reads_nothing_of_a_huge_sparse_file(root: Path) -> None:
    """A file of 3 GB with such a name is not read, neither as a partial one nor as a copy."""
    for name in (".toolrt-1-2-3.undo", ".toolrt-1-2-4.tmp"):
        (root / name).touch()
        os.truncate(root / name, 3_000_000_000)
    assert bytes_read(lambda: Workspace(root)) < 1_000_000
    assert bytes_read(lambda: RealDisk(root).recover()) < 1_000_000


@pytest.mark.process
@linux_only
def test_start_reads_one_block_of_a_true_name_with_another_content(root: Path) -> None:
    """The name of a true copy on a huge file leads to no more than a look at its first block."""
    (root / "d" / "x").write_bytes(OLD)
    os.link(root / "d" / "x", root / "d" / "y")
    left = root / "d" / left_by(str(root), ("d", "x"), ".undo", str(root.parent / "state"))
    left.unlink()
    left.touch()
    os.truncate(left, 3_000_000_000)
    assert bytes_read(lambda: RealDisk(root).recover()) < 1_000_000


@pytest.mark.seldom
@pytest.mark.process
@linux_only
def test_thousands_of_planted_names_cost_little_and_are_counted(root: Path) -> None:
    """A start opens none of them, names some of them to people, and all of them to programs."""
    for number in range(3_000):
        (root / "d" / f".toolrt-{number}.undo").write_bytes(forged("readme", os.stat(root / "readme").st_ino))
    found: list[Workspace] = []
    assert bytes_read(lambda: found.append(Workspace(root))) < 1_000_000
    assert len(found[0].left_alone) == 3_000
    ended = run_read_file(root)
    assert "3,000 names" in ended.stderr
    assert len(ended.stderr) < 2_000
    assert len(os.listdir(root / "d")) == 3_000


@pytest.mark.process
def test_what_a_killed_writer_left_is_mended(root: Path) -> None:
    """The half-written file has its old content in all its names, and both names of the disk's own are gone."""
    (root / "d" / "x").write_bytes(OLD)
    os.link(root / "d" / "x", root / "d" / "y")
    left_by(str(root), ("d", "x"), ".undo", str(root.parent / "state"))
    assert (root / "d" / "y").read_bytes() not in (OLD, LONG)
    left_by(str(root), ("d", "new"), ".tmp", str(root.parent / "state"))
    workspace = Workspace(root)
    assert workspace.left_alone == ()
    assert sorted(os.listdir(root / "d")) == ["x", "y"]
    assert (root / "d" / "x").read_bytes() == (root / "d" / "y").read_bytes() == OLD
    assert os.stat(root / "d" / "x").st_nlink == 2


@pytest.mark.process
def test_true_copy_mends_no_other_file(root: Path, tmp_path: Path) -> None:
    """Where another file, or a link out of the workspace, stands in the place of the half-written one, both stay."""
    (root / "d" / "x").write_bytes(OLD)
    os.link(root / "d" / "x", root / "y")
    left = left_by(str(root), ("d", "x"), ".undo", str(root.parent / "state"))
    torn = (root / "d" / "x").read_bytes()
    (tmp_path / "victim").write_bytes(torn)
    (root / "d" / "x").unlink()
    (root / "d" / "x").symlink_to(tmp_path / "victim")
    RealDisk(root).recover()
    (root / "d" / "x").unlink()
    (root / "d" / "x").write_bytes(torn)
    RealDisk(root).recover()
    assert (root / "d" / "x").read_bytes() == (tmp_path / "victim").read_bytes() == torn
    assert (root / "d" / left).exists()


@pytest.mark.seldom
@pytest.mark.process
def test_copy_that_was_changed_is_not_believed(root: Path) -> None:
    """Its signature covers what it says and what it holds: with one byte changed no file is touched."""
    for place in (10, 80, 4096, 4096 + len(OLD) + 10):
        (root / "d" / "x").write_bytes(OLD)
        (root / "d" / "y").unlink(missing_ok=True)
        os.link(root / "d" / "x", root / "d" / "y")
        left = root / "d" / left_by(str(root), ("d", "x"), ".undo", str(root.parent / "state"))
        torn = (root / "d" / "x").read_bytes()
        changed = bytearray(left.read_bytes())
        changed[place] ^= 1
        left.write_bytes(changed)
        RealDisk(root).recover()
        assert (root / "d" / "x").read_bytes() == torn
        left.unlink(missing_ok=True)


@pytest.mark.process
def test_link_in_the_place_of_a_true_copy_is_not_followed(root: Path, tmp_path: Path) -> None:
    """What it leads to is neither read nor changed."""
    (root / "d" / "x").write_bytes(OLD)
    os.link(root / "d" / "x", root / "d" / "y")
    left = root / "d" / left_by(str(root), ("d", "x"), ".undo", str(root.parent / "state"))
    shutil.copy(left, tmp_path / "copy")
    left.unlink()
    left.symlink_to(tmp_path / "copy")
    torn = (root / "d" / "x").read_bytes()
    RealDisk(root).recover()
    assert (root / "d" / "x").read_bytes() == torn
    assert (tmp_path / "copy").exists()


@pytest.mark.process
def test_tree_that_was_moved_is_mended_and_one_that_was_copied_is_not(root: Path, tmp_path: Path) -> None:
    """A copy of the tree has a true copy of another file's: it is left alone and reported."""
    (root / "d" / "x").write_bytes(OLD)
    os.link(root / "d" / "x", root / "d" / "y")
    left = left_by(str(root), ("d", "x"), ".undo", str(root.parent / "state"))
    torn = (root / "d" / "x").read_bytes()
    subprocess.run(["cp", "-a", str(root), str(tmp_path / "copied")], check=True)
    root.rename(tmp_path / "moved")
    assert Workspace(tmp_path / "copied").left_alone == (f"d/{left}",)
    assert (tmp_path / "copied" / "d" / "x").read_bytes() == torn
    assert Workspace(tmp_path / "moved").left_alone == ()
    assert (tmp_path / "moved" / "d" / "x").read_bytes() == OLD


@pytest.mark.process
def test_without_its_state_directory_nothing_is_believed(root: Path, tmp_path: Path) -> None:
    """Where the key is gone, what a dead writer left is left alone and reported."""
    (root / "d" / "x").write_bytes(OLD)
    os.link(root / "d" / "x", root / "d" / "y")
    left = left_by(str(root), ("d", "x"), ".undo", str(tmp_path / "state"))
    torn = (root / "d" / "x").read_bytes()
    shutil.rmtree(tmp_path / "state")
    assert Workspace(root).left_alone == (f"d/{left}",)
    assert (root / "d" / "x").read_bytes() == torn


@pytest.mark.process
@pytest.mark.parametrize("bad", ["short", "readable by others", "a link"])
def test_key_that_others_may_know_is_not_used(root: Path, tmp_path: Path, bad: str) -> None:
    """A key file that is not 32 bytes, that others may read, or that is a link is as good as none."""
    (root / "d" / "x").write_bytes(OLD)
    os.link(root / "d" / "x", root / "d" / "y")
    left_by(str(root), ("d", "x"), ".undo", str(tmp_path / "state"))
    torn = (root / "d" / "x").read_bytes()
    key = tmp_path / "state" / "key"
    assert key.stat().st_mode & 0o777 == 0o600
    if bad == "short":
        os.truncate(key, 31)
    elif bad == "readable by others":
        key.chmod(0o644)
    else:
        key.rename(tmp_path / "elsewhere")
        key.symlink_to(tmp_path / "elsewhere")
    assert len(Workspace(root).left_alone) == 1
    assert (root / "d" / "x").read_bytes() == torn


def test_state_directory_in_the_workspace_holds_no_key(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a repository brings as a state directory of its own makes nothing believed: the key is the user's own."""
    monkeypatch.delenv("TOOLRT_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "mine"))
    (root / ".state").mkdir()
    (root / ".state" / "key").write_bytes(b"k" * 32)
    (root / ".state" / "key").chmod(0o600)
    workspace = Workspace(root, state_dir=root / ".state")
    trio.run(lambda: workspace.disk.revise(("a",), 100, lambda before: b"a"))
    assert (root / ".state" / "key").read_bytes() == b"k" * 32
    assert len((tmp_path / "mine" / "toolrt" / "key").read_bytes()) == 32


@pytest.mark.parametrize("entry", [["..", "victim"], ["d", "../../victim"], ["/victim"], [""], ["a\0b"]])
def test_forged_history_leads_nowhere_outside(root: Path, tmp_path: Path, entry: list[str]) -> None:
    """A history that a repository brings along may name no file outside: nothing is read from such a history."""
    state = root / ".state"
    directory = Path(state_directory(RealDisk(root), state) or "")
    directory.mkdir(parents=True)
    made = ["FILE", hashlib.sha256(VICTIM).hexdigest(), 0o644]  # of an unfinished group, which a start takes back
    row = ["b", 0, None, entry, entry, None, made, None, None, "g", 1]
    with open(directory / "segment-00000001.log", "wb") as file:
        for said in ({"session": "s"}, {"begun": [0, 1, [row], []]}):
            text = json.dumps(said).encode()
            file.write(struct.pack("<4sIIQ", b"trt1", zlib.crc32(text), len(text), 0) + text)
    workspace = Workspace(root, state_dir=state)
    with pytest.raises(FileProblem):
        trio.run(workspace.history.undo, "b")
    assert (tmp_path / "victim").read_bytes() == VICTIM


def test_twin_believes_nothing_either() -> None:
    """A copy that is planted on a twin is left alone; what its own writer left is mended."""
    disk = MemoryDisk({"a": "hello", "d/.toolrt-1-2-3.undo": forged("a", 3), "d/.toolrt-0-a.tmp": "mine"})
    assert disk.recover() == []
    assert disk.strangers() == ["d/.toolrt-0-a.tmp", "d/.toolrt-1-2-3.undo"]
    assert disk.peek(("d", ".toolrt-0-a.tmp")) == b"mine"
