"""What both disks do alike, errno by errno."""

from __future__ import annotations

import errno
from typing import Any

import pytest
import trio
import trio.testing

from toolrt.workspace import EXACT, Directory, Disk, HardLink, Kind, NotRegular, Special, Symlink, TooLarge

LIMIT = 1000


async def errno_of(operation: Any) -> int | None:
    with pytest.raises(OSError) as caught:
        await operation
    return caught.value.errno


def look_errno(look: Any, path: str) -> int | None:
    with pytest.raises(OSError) as caught:
        look(path)
    return caught.value.errno


def test_disk_is_a_disk(tree):
    """Both fit the port."""
    assert isinstance(tree.disk, Disk)


async def test_read_refuses_more_than_the_limit_with_the_size(tree):
    """One byte more is refused, and says so."""
    tree.put("a", b"x" * (LIMIT + 1))
    with pytest.raises(TooLarge) as caught:
        await tree.disk.read(("a",), LIMIT)
    assert (caught.value.size, caught.value.limit, caught.value.errno) == (LIMIT + 1, LIMIT, errno.EFBIG)


def plant(tree):
    tree.put("directory/a", "inside")
    tree.put("file", "text")
    tree.put("link", Symlink("file"))
    tree.put("dangling", Symlink("nowhere"))
    tree.put("way", Symlink("directory"))
    tree.put("pipe", Special())


#: What reading and replacing refuse alike.
NO_FILE = [
    (("missing", "a"), errno.ENOENT),
    ((), errno.EISDIR),
    (("directory",), errno.EISDIR),
    (("file", "a"), errno.ENOTDIR),
    (("link",), errno.ELOOP),
    (("dangling",), errno.ELOOP),
    (("way", "a"), errno.ELOOP),
    (("pipe",), errno.EINVAL),
    (("pipe", "a"), errno.ENOTDIR),
    (("x" * 256,), errno.ENAMETOOLONG),
    (("x" * 256, "a"), errno.ENAMETOOLONG),
]

#: For each operation what it is given and the error that it raises on both disks.
REFUSED: dict[str, list[tuple[tuple[Any, ...], int]]] = {
    "read": [*(((entry, LIMIT), number) for entry, number in NO_FILE), ((("missing",), LIMIT), errno.ENOENT)],
    "revise": [((entry, LIMIT, lambda _: b"new"), number) for entry, number in NO_FILE],
    "make_dirs": [
        ((("file",),), errno.ENOTDIR),
        ((("file", "a"),), errno.ENOTDIR),
        ((("way",),), errno.ELOOP),
        ((("way", "a"),), errno.ELOOP),
    ],
    "make_link": [
        (((), "a"), errno.EEXIST),
        ((("file",), "a"), errno.EEXIST),
        ((("dangling",), "a"), errno.EEXIST),
        ((("missing", "l"), "a"), errno.ENOENT),
        ((("file", "l"), "a"), errno.ENOTDIR),
        ((("way", "l"), "a"), errno.ELOOP),
        ((("l",), ""), errno.ENOENT),
        ((("l",), "x" * 4096), errno.ENAMETOOLONG),
        ((("x" * 256,), "a"), errno.ENAMETOOLONG),
    ],
    "set_mode": [
        (((), 0o600), errno.EBUSY),
        ((("missing",), 0o600), errno.ENOENT),
        ((("file", "a"), 0o600), errno.ENOTDIR),
        ((("dangling",), 0o600), errno.ELOOP),
        ((("way", "a"), 0o600), errno.ELOOP),
        ((("pipe",), 0o600), errno.EINVAL),
    ],
}


@pytest.mark.parametrize("operation", REFUSED)
async def test_operation_fails_alike_and_changes_nothing(tree, operation):
    """Each refusal has the same errno on both disks, and leaves everything as it was."""
    plant(tree)
    before = tree.workspace.snapshot()
    for arguments, number in REFUSED[operation]:
        assert (arguments, await errno_of(getattr(tree.disk, operation)(*arguments))) == (arguments, number)
    assert tree.workspace.snapshot() == before


async def test_a_special_file_is_refused_by_its_kind(tree):
    """A pipe is named as one, and nothing waits for a writer."""
    plant(tree)
    with pytest.raises(NotRegular) as caught, trio.fail_after(5):
        await tree.disk.read(("pipe",), LIMIT)
    assert caught.value.kind is Kind.FIFO


@pytest.mark.parametrize("entry", [("missing", "a"), ("file", "a"), ("way", "a"), ("link",)])
async def test_error_text_shows_no_path_above_the_root(tree, entry):
    """An error of the disk names an entry at most."""
    plant(tree)
    with pytest.raises(OSError) as caught:
        await tree.disk.read(entry, LIMIT)
    assert tree.root not in str(caught.value)


async def test_replace_changes_time_or_number(tree):
    """Another content shows in a look, even within one time step of the file system."""
    tree.put("a", "old")
    before = tree.disk.lstat(f"{tree.root}/a")
    await tree.disk.revise(("a",), LIMIT, lambda _: b"new")
    after = tree.disk.lstat(f"{tree.root}/a")
    assert (after.mtime_ns, after.inode) != (before.mtime_ns, before.inode)


@pytest.mark.parametrize("mode", [0o600, 0o755, 0o644, 0o4750])
async def test_replace_keeps_the_mode(tree, mode_of, mode):
    """An executable stays one."""
    tree.put("a", "old", mode=mode)
    await tree.disk.revise(("a",), LIMIT, lambda _: b"new")
    assert mode_of(tree, "a") == mode


async def test_replace_takes_a_name_of_the_longest_length(tree):
    """A temporary file beside a 255-byte name needs no longer one."""
    name = "x" * 255
    await tree.disk.revise((name,), LIMIT, lambda _: b"new")
    assert tree.workspace.snapshot() == {name: b"new"}


async def test_replace_cancelled_before_it_begins_changes_nothing(tree):
    """A cancel that was there first leaves the old content."""
    tree.put("a", "old")
    with trio.CancelScope() as scope:
        scope.cancel()
        await tree.disk.revise(("a",), LIMIT, lambda _: b"new")
    assert scope.cancelled_caught
    assert tree.workspace.snapshot() == {"a": b"old"}


async def test_make_dirs_of_the_root_does_nothing(tree):
    """The root is there already."""
    await tree.disk.make_dirs(())
    assert tree.workspace.snapshot() == {}


@pytest.mark.parametrize("operation", ["read", "revise", "make_dirs"])
async def test_async_operations_always_checkpoint(tree, operation):
    """Each operation lets others run and notices a cancel."""
    tree.put("a", "old")
    arguments = {"read": (("a",), LIMIT), "revise": (("a",), LIMIT, lambda _: b"new"), "make_dirs": (("d",),)}[
        operation
    ]
    with trio.testing.assert_checkpoints():
        await getattr(tree.disk, operation)(*arguments)


def test_lstat_tells_kinds_apart(tree):
    """A look does not follow the last link."""
    plant(tree)
    kinds = {name: tree.disk.lstat(f"{tree.root}/{name}").kind for name in tree.listing()}
    assert kinds == {
        "dangling": Kind.SYMLINK, "directory": Kind.DIRECTORY, "file": Kind.FILE,
        "link": Kind.SYMLINK, "pipe": Kind.FIFO, "way": Kind.SYMLINK,
    }  # fmt: skip


def test_lstat_tells_size_mode_and_links(tree):
    """A look shows what identity and limits need."""
    tree.put("a", "four", mode=0o640)
    tree.put("b", HardLink("a"))
    tree.put("c", Symlink("häuser"))
    found = tree.disk.lstat(f"{tree.root}/a")
    assert (found.size, found.mode, found.links) == (4, 0o640, 2)
    assert tree.disk.lstat(f"{tree.root}/c").size == 7


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("missing", errno.ENOENT),
        ("file/a", errno.ENOTDIR),
        ("x" * 256, errno.ENAMETOOLONG),
        ("x/" * 2100, errno.ENAMETOOLONG),
    ],
)
def test_lstat_fails_alike(tree, path, number):
    """Each failed look has the same errno on both disks."""
    plant(tree)
    assert look_errno(tree.disk.lstat, f"{tree.root}/{path}") == number


def test_readlink_returns_the_text(tree):
    """A link's text is not interpreted."""
    plant(tree)
    assert tree.disk.readlink(f"{tree.root}/dangling") == "nowhere"
    assert look_errno(tree.disk.readlink, f"{tree.root}/file") == errno.EINVAL


def test_listdir_is_sorted(tree):
    """Order never depends on the disk."""
    for name in "cab":
        tree.put(f"d/{name}")
    assert tree.listing("d") == ["a", "b", "c"]
    assert look_errno(tree.disk.listdir, f"{tree.root}/d/a") == errno.ENOTDIR


def test_folds_says_exact_where_case_counts(tree):
    """A directory in which case counts folds nothing."""
    tree.put("Some", "text")
    tree.put("empty", Directory())
    assert tree.disk.folds(tree.root) == EXACT
    assert tree.disk.folds(f"{tree.root}/empty") == EXACT


def test_snapshot_shows_everything(tree):
    """Files, links, empty directories and special files are all compared."""
    plant(tree)
    tree.put("empty", Directory())
    assert tree.workspace.snapshot() == {
        "dangling": "-> nowhere",
        "directory/a": b"inside",
        "empty/": "",
        "file": b"text",
        "link": "-> file",
        "pipe": "a named pipe",
        "way": "-> directory",
    }


def test_snapshot_of_a_large_file_is_its_digest(tree):
    """A snapshot stays small."""
    tree.put("a", b"x" * (1024 * 1024 + 1))
    tree.put("b", b"x" * (1024 * 1024))
    found = tree.workspace.snapshot()
    assert str(found["a"]).startswith("sha256:")
    assert found["b"] == b"x" * (1024 * 1024)


async def test_set_mode_sets_permission_bits(tree, mode_of):
    """Of a file under all its names, and of a directory; the content's time stays."""
    tree.put("a", "one")
    tree.put("b", HardLink("a"))
    tree.put("d", Directory())
    before = tree.disk.lstat(f"{tree.root}/a")
    await tree.disk.set_mode(("a",), 0o751)
    await tree.disk.set_mode(("d",), 0o700)
    assert [mode_of(tree, path) for path in "abd"] == [0o751, 0o751, 0o700]
    assert tree.disk.lstat(f"{tree.root}/a").mtime_ns == before.mtime_ns
