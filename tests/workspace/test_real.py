"""What only the real disk can show: threads, races, the system's own errors."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import struct
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import trio
import trio.testing

from toolrt import probe
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.workspace import FileProblem, RealDisk, Workspace
from toolrt.workspace.disk import _real_remove, _real_write

LIMIT = 1000


@pytest.fixture
def disk(tmp_path):
    (tmp_path / "work").mkdir()
    return RealDisk(tmp_path / "work")


def plant(disk, name, text):
    path = Path(disk.root, name)
    path.write_text(text)
    return path


def descriptors():
    return sorted(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path / "missing",
        lambda path: path / "file",
        lambda path: path / "file" / "x",
        lambda path: "a\0b",
        lambda _: "",
    ],
)
def test_workspace_refuses_what_is_no_directory(tmp_path, make):
    """A missing root, a file, a name that cannot be and an empty one are refused with a remedy."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputRefused) as caught:
        Workspace(make(tmp_path))
    assert caught.value.remedy


@pytest.mark.parametrize("root", [None, 3, object()])
def test_workspace_refuses_what_is_neither_path_nor_disk(root):
    """The text says what it must be."""
    with pytest.raises(DefinitionRefused, match="a directory's path or a disk"):
        Workspace(root)


def test_workspace_takes_a_path_or_a_string(tmp_path):
    """Both mean the same directory."""
    assert Workspace(tmp_path).disk.root == Workspace(str(tmp_path)).disk.root == str(tmp_path.resolve())


async def test_new_file_follows_the_umask(disk):
    """A new file has the mode any program would give it."""
    before = os.umask(0o027)
    try:
        await disk.revise(("a",), LIMIT, lambda _: b"new")
    finally:
        os.umask(before)
    assert disk.lstat(f"{disk.root}/a").mode == 0o640


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
async def test_replace_keeps_the_owner(disk):
    """Who edits a file does not take it over."""
    path = plant(disk, "a", "old")
    os.chown(path, 1234, 4321)
    await disk.revise(("a",), LIMIT, lambda _: b"new")
    found = os.lstat(path)
    assert (found.st_uid, found.st_gid) == (1234, 4321)


def _acl(*entries):
    """A POSIX access control list as the system takes it: tag, permissions and id of each entry (acl(5))."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


_NOBODY = 0xFFFFFFFF
_ATTRIBUTES = {
    "user.origin": b"elsewhere",
    "system.posix_acl_access": _acl((1, 6, _NOBODY), (2, 4, 1234), (4, 4, _NOBODY), (16, 4, _NOBODY), (32, 0, _NOBODY)),
}


@pytest.fixture
def marked(disk):
    """A file with extended attributes and an access control list."""
    path = plant(disk, "a", "old")
    try:
        for name, value in _ATTRIBUTES.items():
            os.setxattr(path, name, value)
    except (OSError, AttributeError):
        pytest.skip("this file system keeps no extended attributes")
    return path


def attributes_of(path):
    return {name: os.getxattr(path, name) for name in os.listxattr(path)}


async def test_replace_keeps_extended_attributes_and_access_control_lists(disk, marked):
    """Who could read a file can read it after an edit, and nobody else can."""
    before = os.lstat(marked)
    await disk.revise(("a",), LIMIT, lambda _: b"new")
    after = os.lstat(marked)
    assert marked.read_text() == "new"
    assert attributes_of(marked) == _ATTRIBUTES
    assert (after.st_mode, after.st_ino != before.st_ino) == (before.st_mode, True)


@pytest.mark.parametrize("refused", [errno.EPERM, errno.EACCES, errno.ENOTSUP])
async def test_file_whose_attributes_cannot_be_given_on_is_written_in_place(disk, marked, monkeypatch, refused):
    """It stays the file it is."""

    def refuse(*_):
        raise OSError(refused, "not yours")

    before = os.lstat(marked)
    with monkeypatch.context() as patch:
        patch.setattr(os, "setxattr", refuse)
        await disk.revise(("a",), LIMIT, lambda _: b"new")
    assert marked.read_text() == "new"
    assert attributes_of(marked) == _ATTRIBUTES
    assert os.lstat(marked).st_ino == before.st_ino
    assert os.listdir(disk.root) == ["a"]


async def test_capabilities_of_a_program_end_when_it_is_changed(disk, monkeypatch):
    """As when it is written in place: the system takes them away."""
    plant(disk, "a", "old")
    given = {"security.capability": b"all", "user.kept": b"1"}
    monkeypatch.setattr(os, "listxattr", lambda _: list(given), raising=False)
    monkeypatch.setattr(os, "getxattr", lambda _, name: given[name], raising=False)
    made = []
    monkeypatch.setattr(os, "setxattr", lambda _, name, value: made.append((name, value)), raising=False)
    await disk.revise(("a",), LIMIT, lambda _: b"new")
    assert made == [("user.kept", b"1")]


@pytest.mark.parametrize("broken", ["write", "fchmod", "replace"])
async def test_replace_that_fails_removes_its_temporary_file(disk, monkeypatch, broken):
    """Whatever call fails, the old content stays alone."""
    plant(disk, "a", "old")

    def fail(*args, **more):
        raise OSError(errno.ENOSPC, "no room", f"{disk.root}/a")

    workspace = Workspace(disk)  # made before, so that it mends nothing
    before = descriptors()
    with monkeypatch.context() as patch:
        patch.setattr(os, broken, fail)
        patch.setattr(_real_write, "_exchanging_rename", None)  # as on a file system that exchanges no names
        with pytest.raises(OSError) as caught:
            await disk.revise(("a",), LIMIT, lambda _: b"new")
    assert caught.value.errno == errno.ENOSPC
    assert disk.root not in str(caught.value)
    assert workspace.snapshot() == {"a": b"old"}
    assert descriptors() == before


async def test_write_in_place_that_fails_puts_the_old_content_back(disk, monkeypatch):
    """A file with several names is whole again after a failed write."""
    plant(disk, "a", "a longer content")
    os.link(f"{disk.root}/a", f"{disk.root}/b")
    workspace = Workspace(disk)  # made before, so that it mends nothing
    really, calls = os.write, itertools.count()

    def write(descriptor, content):
        if next(calls) == 1:
            raise OSError(errno.ENOSPC, "no room")
        return really(descriptor, content[:2])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(OSError):
            await disk.revise(("a",), LIMIT, lambda _: b"new")
    assert workspace.snapshot() == {"a": b"a longer content", "b": b"a longer content"}


async def test_replace_is_not_cut_by_a_cancel(disk, monkeypatch):
    """A cancel in the middle waits for the end, and the caller is told that it happened."""
    plant(disk, "a", "old")
    inside, go_on = threading.Event(), threading.Event()
    really = os.replace

    def replace(*args, **more):
        inside.set()
        assert go_on.wait(30)
        really(*args, **more)

    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(_real_write, "_exchanging_rename", None)
    ended = False
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:

            async def cancel():
                await trio.to_thread.run_sync(inside.wait)
                scope.cancel()
                await trio.testing.wait_all_tasks_blocked()
                assert not ended
                go_on.set()

            nursery.start_soon(cancel)
            await disk.revise(("a",), LIMIT, lambda _: b"new")
            ended = True
    assert not scope.cancelled_caught
    assert Workspace(disk).snapshot() == {"a": b"new"}


async def test_operations_leave_no_open_handle(disk):
    """Success and each failure close what they opened."""
    tree = Path(disk.root)
    (tree / "d").mkdir()
    (tree / "d" / "a").write_text("old")
    (tree / "way").symlink_to("d")
    await disk.read(("d", "a"), 10)
    before = descriptors()
    for entry in (("d", "a"), ("d",), ("way", "a"), ("d", "a", "x"), ("missing", "x")):
        for operation in (
            lambda entry=entry: disk.read(entry, 2),
            lambda entry=entry: disk.revise(entry, LIMIT, lambda _: b"new"),
            lambda entry=entry: disk.make_dirs(entry[:-1]),
        ):
            with contextlib.suppress(OSError):
                await operation()
    assert descriptors() == before


async def test_pipe_swapped_in_before_the_open_does_not_block(disk, monkeypatch):
    """What was a file when looked at may be a pipe when opened."""
    path = plant(disk, "a", "old")
    really = os.open

    def swap(name, *args, **more):
        if name == "a":
            path.unlink()
            os.mkfifo(path)
        return really(name, *args, **more)

    monkeypatch.setattr(os, "open", swap)
    with trio.fail_after(5), pytest.raises(OSError, match="named pipe"):
        await disk.read(("a",), 10)


async def test_file_that_grows_while_it_is_read_is_refused(disk, monkeypatch):
    """The limit holds for what is read, not for what was seen first."""
    path = plant(disk, "a", "old")
    really = os.read

    def grow(descriptor, size):
        with path.open("a") as file:
            file.write("x" * 20)
        return really(descriptor, size)

    monkeypatch.setattr(os, "read", grow)
    with pytest.raises(OSError) as caught:
        await disk.read(("a",), 10)
    assert caught.value.errno == errno.EFBIG


async def test_link_swapped_in_by_a_racing_thread_never_leads_outside(tmp_path, call):
    """However often a directory is swapped for a link to the outside, nothing there is read or written."""
    root, outside = tmp_path / "work", tmp_path / "outside"
    (root / "real").mkdir(parents=True)
    outside.mkdir()
    (root / "real" / "a").write_text("inside")
    (outside / "a").write_text("secret")
    (root / "d").symlink_to("real")
    workspace = Workspace(root)
    stop = threading.Event()

    def race():
        inside, out = root / "inside", root / "out"
        while not stop.is_set():
            inside.symlink_to("real")
            os.replace(inside, root / "d")
            out.symlink_to(outside)
            os.replace(out, root / "d")

    thread = threading.Thread(target=race)
    thread.start()
    seen, refusals = set(), []
    try:
        for number in range(300):
            name = ("read_file", "write_file")[number % 2]
            more = {"content": "inside"} if name == "write_file" else {}
            try:
                seen.add(await call(SimpleNamespace(workspace=workspace), name, path="d/a", **more))
            except FileProblem as problem:
                refusals.append(str(problem))
    finally:
        stop.set()
        thread.join()
    # The thread's last act was to lead out.
    with pytest.raises(FileProblem) as refused:
        await call(SimpleNamespace(workspace=workspace), "read_file", path="d/a")
    refusals.append(str(refused.value))
    assert seen <= {"inside", "replaced real/a (6 bytes)"}
    assert (outside / "a").read_text() == "secret"
    assert sorted(os.listdir(outside)) == ["a"]
    assert not any(str(tmp_path) in refusal for refusal in refusals)


async def test_directory_swapped_while_walking_is_not_followed(disk, monkeypatch, tmp_path):
    """The moment between the look and the open is no way out."""
    (Path(disk.root) / "d").mkdir()
    (Path(disk.root) / "d" / "a").write_text("inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a").write_text("secret")
    really = os.open

    def swap(name, *args, **more):
        if name == "d":
            os.rename(Path(disk.root, "d"), Path(disk.root, "moved"))
            Path(disk.root, "d").symlink_to(tmp_path / "outside")
        return really(name, *args, **more)

    monkeypatch.setattr(os, "open", swap)
    with pytest.raises(OSError) as caught:
        await disk.read(("d", "a"), 10)
    assert caught.value.errno == errno.ELOOP


async def test_inline_threads_run_in_place(disk, monkeypatch):
    """A simulation that has no threads gets the same answer, after a checkpoint."""
    monkeypatch.setattr(trio.to_thread, "run_sync", None)
    with probe.observed_by(None, inline=True):
        with trio.testing.assert_checkpoints():
            await disk.revise(("a",), LIMIT, lambda _: b"new")
        assert (await disk.read(("a",), 10)).content == b"new"


def test_identity_opens_no_file(tmp_path, monkeypatch):
    """Claims look and never open."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_text("")
    (tmp_path / "l").symlink_to("d/a")
    os.mkfifo(tmp_path / "pipe")
    workspace = Workspace(tmp_path)

    def refuse(*args, **more):
        raise AssertionError("opened")

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr("builtins.open", refuse)
    for path in ("l", "d/new", "pipe", str(tmp_path / "d" / "a"), "d/../d/a"):
        workspace.identify(path)


def test_foldings_kept_are_bounded(disk, monkeypatch):
    """The table of foldings does not grow with the tree."""
    monkeypatch.setattr("toolrt.workspace.disk._real._FOLDINGS_KEPT", 3)
    for number in range(10):
        Path(disk.root, f"d{number}").mkdir()
        Path(disk.root, f"d{number}", "a").touch()
        disk.folds(f"{disk.root}/d{number}")
    assert len(disk._foldings) <= 3


def planted_tree(disk):
    """A directory with two files, and a directory between them that has one."""
    for path in ("d/a", "d/m/b", "d/z"):
        Path(disk.root, path).parent.mkdir(parents=True, exist_ok=True)
        Path(disk.root, path).write_text(path)
    return Workspace(disk).snapshot()


async def removed(disk, call):
    """What ``delete_path d`` answers."""
    tree = SimpleNamespace(workspace=Workspace(disk))
    try:
        return tree.workspace, await call(tree, "delete_path", path="d", recursive=True)
    except FileProblem as problem:
        return tree.workspace, str(problem)


async def test_tree_that_is_used_while_it_is_removed_is_gone_and_its_versions_stay(disk, call, monkeypatch):
    """Who goes on making files in it has the rest under another name; nothing is half there, and `recover` mends."""
    planted_tree(disk)
    really, serial = os.rmdir, itertools.count()

    def rmdir(name, *args, **more):
        there = os.open(name, os.O_RDONLY, dir_fd=more["dir_fd"])
        os.close(os.open(f"log{next(serial)}", os.O_CREAT | os.O_WRONLY, dir_fd=there))
        os.close(there)
        really(name, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", rmdir)
        workspace, answer = await removed(disk, call)
        disk.recover()  # he goes on
    assert "expected" not in answer
    assert not any(path.startswith("d/") for path in workspace.snapshot())
    assert len(await workspace.history.versions("d/a")) == 1
    assert disk.recover()
    assert workspace.snapshot() == {}
    await workspace.history.undo("batch")
    assert workspace.snapshot()["d/a"] == b"d/a"


@pytest.mark.parametrize("seen", ["device", "mark"])
async def test_tree_with_a_mount_inside_is_refused_untouched(disk, call, monkeypatch, seen):
    """It is known by its device, or, where the system tells, by what it is."""
    before = planted_tree(disk)
    if seen == "mark":
        monkeypatch.setattr(_real_remove, "_attributes", lambda name, above: 0x2000 if name == "m" else 0)
    else:
        really = os.lstat

        def lstat(path, **more):
            found = really(path, **more)
            return os.stat_result((*found[:2], found.st_dev + 1, *found[3:])) if path == "m" else found

        monkeypatch.setattr(os, "lstat", lstat)
    monkeypatch.setattr(_real_remove, "rename_new", None)
    workspace, answer = await removed(disk, call)
    assert answer == "d: expected what can go from its place, got a mount, or one inside. Nothing was changed."
    assert workspace.snapshot() == before


@pytest.mark.parametrize("mark", [0x10, 0x20])
async def test_tree_with_a_file_that_may_not_change_is_refused_untouched(disk, call, monkeypatch, mark):
    """``chattr +i`` and ``+a`` bind root too."""
    before = planted_tree(disk)
    monkeypatch.setattr(_real_remove, "_attributes", lambda name, above: mark if name == "b" else 0)
    monkeypatch.setattr(_real_remove, "rename_new", None)
    workspace, answer = await removed(disk, call)
    assert "expected permission" in answer
    assert workspace.snapshot() == before


@pytest.mark.skipif(not os.path.ismount("/proc"), reason="no mount is known to be there")
def test_system_tells_where_a_mount_begins():
    """Linux does since 5.8; what is no mount is not marked."""
    above = os.open("/", os.O_RDONLY)
    try:
        if tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) < (5, 8):
            pytest.skip("this system does not tell")
        assert _real_remove._attributes("proc", above) & 0x2000
        assert not _real_remove._attributes("etc/passwd-that-is-not-there", above)
    finally:
        os.close(above)
