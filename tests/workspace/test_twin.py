"""What only the twin can show: every step, every fault, every access."""

from __future__ import annotations

import errno
import os
from types import SimpleNamespace

import pytest
import trio

from toolrt import probe, sim
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.workspace import Changed, Directory, FileProblem, Folding, HardLink, MemoryDisk, Special, Symlink, Workspace

LIMIT = 1000


class Accesses:
    """Keeps the accesses of a test, step by step."""

    def __init__(self):
        self.steps = [[]]

    def event(self, kind, fields):
        pass

    def access(self, resource, write):
        self.steps[-1].append((resource, write))

    @property
    def written(self):
        return sorted({resource for step in self.steps for resource, write in step if write}, key=str)

    @property
    def read(self):
        return sorted({resource for step in self.steps for resource, write in step if not write}, key=str)


@pytest.fixture
def accesses():
    return Accesses()


class StepCounter(trio.abc.Instrument):
    """Cancels a scope just before the given step of the running task."""

    def __init__(self, scope, step):
        self.scope = scope
        self.left = step

    def after_task_step(self, task):
        self.left -= 1
        if self.left == 0:
            self.scope.cancel()


@pytest.mark.parametrize("root", ["work", "/a/../b"])
def test_twin_refuses_a_root_that_is_no_absolute_path(root):
    """The root must be plain."""
    with pytest.raises(DefinitionRefused):
        MemoryDisk(root=root)


@pytest.mark.parametrize(
    "content",
    [
        {"a": "", "a/b": ""},
        {"a": HardLink("missing")},
        {"a": 1},
        {"../a": ""},
        {"": ""},
        {"d": Directory(), "a": HardLink("d")},
    ],
)
def test_twin_refuses_content_that_cannot_stand(content):
    """What cannot be planted is said at once."""
    with pytest.raises(DefinitionRefused):
        MemoryDisk(content)


def test_twin_may_be_planted_outside_its_root():
    """An absolute path is on the same disk, and no part of the workspace."""
    disk = MemoryDisk({"/etc/passwd": "secret", "a": "text"})
    assert Workspace(disk).snapshot() == {"a": b"text"}
    assert disk.lstat("/etc/passwd").size == 6


def test_copy_shares_nothing():
    """What happens to a copy does not show in the twin it was made of."""
    disk = MemoryDisk({"a": "one", "b": HardLink("a"), "d/c": "two", "l": Symlink("a")})
    copy = disk.copy()
    copy.put("a", "changed")
    copy.put("d/new", "new")
    assert Workspace(disk).snapshot() == {"a": b"one", "b": b"one", "d/c": b"two", "l": "-> a"}


async def test_copy_keeps_hard_links_together():
    """Two names of one file are two names of one file in the copy."""
    copy = MemoryDisk({"a": "one", "b": HardLink("a")}).copy()
    await copy.revise(("a",), LIMIT, lambda _: b"two")
    assert Workspace(copy).snapshot() == {"a": b"two", "b": b"two"}


def test_drop_takes_links_away():
    """A name that is gone no longer counts, also inside a directory that is."""
    disk = MemoryDisk({"a": "one", "d/b": HardLink("a"), "c": HardLink("a")})
    disk.drop("d")
    disk.drop("c")
    assert disk.lstat("/workspace/a").links == 1
    with pytest.raises(FileNotFoundError):
        disk.drop("c")


# Steps


@pytest.mark.parametrize(
    ("content", "left"),
    [
        ({"a": "old"}, [*[{"a": b"old"}] * 4, {"a": b"new"}]),
        ({"a": "old", "b": HardLink("a")}, [*[{"a": b"old", "b": b"old"}] * 4, {"a": b"new", "b": b"new"}]),
        ({}, [{}, {}, {}, {}, {"a": b"new"}]),
    ],
    ids=["file", "hard_link", "missing"],
)
async def test_revise_cancelled_at_any_step_leaves_old_or_new(content, left):
    """No step leaves half a file or a temporary one; a cancel after the last effect is too late."""
    for step, expected in enumerate(left):
        disk = MemoryDisk(content)
        with trio.CancelScope() as scope:
            counter = StepCounter(scope, step)
            if step == 0:
                scope.cancel()
            trio.lowlevel.add_instrument(counter)
            try:
                await disk.revise(("a",), LIMIT, lambda _: b"new")
            finally:
                trio.lowlevel.remove_instrument(counter)
        assert Workspace(disk).snapshot() == expected
        assert scope.cancelled_caught == (expected != left[-1])


async def test_revise_shows_its_temporary_file_between_its_steps():
    """A simulation can look at the moment the real disk has, too."""
    seen = []
    disk = MemoryDisk({"a": "old"}, fault=lambda name, path: seen.append((name, Workspace(disk).snapshot())))
    await disk.revise(("a",), LIMIT, lambda _: b"new")
    assert seen == [
        ("read", {"a": b"old"}),
        ("write", {"a": b"old"}),
        ("move", {"a": b"old", ".toolrt-0-a.tmp": b"new"}),
    ]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES])
@pytest.mark.parametrize("effect", ["write", "move"])
async def test_fault_at_any_effect_leaves_the_old_content(effect, number):
    """A disk that fails is a disk unchanged, without a temporary file."""

    def fault(name, path):
        if (name, path) == (effect, "a"):
            raise OSError(number, os.strerror(number))

    disk = MemoryDisk({"a": "old"}, fault=fault)
    with pytest.raises(OSError) as caught:
        await disk.revise(("a",), LIMIT, lambda _: b"new")
    assert caught.value.errno == number
    assert Workspace(disk).snapshot() == {"a": b"old"}


async def test_fault_reaches_reading_and_making_directories():
    """Each elementary effect can fail."""
    effects = []
    disk = MemoryDisk({"a": "old"}, fault=lambda name, path: effects.append((name, path)))
    await disk.read(("a",), 10)
    await disk.make_dirs(("d", "e"))
    await disk.revise(("d", "e", "b"), LIMIT, lambda _: b"new")
    assert effects == [
        ("read", "a"),
        ("make directory", "d"),
        ("make directory", "d/e"),
        ("read", "d/e/b"),
        ("write", "d/e/b"),
        ("move", "d/e/b"),
    ]


async def test_two_writers_without_tickets_leave_one_whole_content():
    """Even mutants that order nothing write no half of a file, and lose nothing silently."""
    disk = MemoryDisk({"a": "old"})
    lost = []

    async def write(content):
        try:
            await disk.revise(("a",), LIMIT, lambda _: content)
        except Changed:
            lost.append(content)

    async with trio.open_nursery() as nursery:
        for content in (b"one", b"two", b"three"):
            nursery.start_soon(write, content)
    found = Workspace(disk).snapshot()
    assert list(found) == ["a"]
    assert found["a"] in {b"one", b"two", b"three"} - set(lost)


@pytest.mark.parametrize(
    ("victim", "target", "at", "number"),
    [
        ("d/a", "/outside/secret", "read", errno.ELOOP),
        ("d/a", "/outside/secret", "write", errno.ESTALE),
        ("d/a", "/outside/secret", "move", errno.ESTALE),
        ("d", "/outside", "read", errno.ELOOP),
        ("d", "/outside", "write", errno.ELOOP),
        ("d", "/outside", "move", errno.ELOOP),
    ],
)
async def test_link_swapped_in_between_steps_is_not_followed(victim, target, at, number):
    """At every step of a replace, a link put in the file's or its directory's place leads nowhere."""

    def swap(name, path):
        if name == at:
            disk.put(victim, Symlink(target))

    disk = MemoryDisk({"d/a": "old", "/outside/a": "secret", "/outside/secret": "secret"}, fault=swap)
    with pytest.raises(OSError) as caught:
        await disk.revise(("d", "a"), LIMIT, lambda _: b"new")
    assert caught.value.errno == number
    assert disk.listdir("/outside") == ["a", "secret"]
    assert disk.lstat("/outside/a").size == disk.lstat("/outside/secret").size == 6


async def test_directory_swapped_in_before_the_move_is_kept():
    """A directory is never replaced by a file."""

    def swap(name, path):
        if name == "move":
            disk.put("a", Directory())

    disk = MemoryDisk({"a": "old"}, fault=swap)
    with pytest.raises(Changed):
        await disk.revise(("a",), LIMIT, lambda _: b"new")
    assert Workspace(disk).snapshot() == {"a/": ""}


# Accesses


async def test_replace_touches_its_entry_and_its_temporary_one(accesses):
    """Per entry, never per table: two files of one directory have no access in common that writes."""
    disk = MemoryDisk({"d/a": "old", "d/b": "old"})
    with probe.observed_by(accesses):
        await disk.revise(("d", "a"), LIMIT, lambda _: b"new")
    assert accesses.written == [("disk", "d", ".toolrt-0-a.tmp"), ("disk", "d", "a")]
    assert ("disk", "d") in accesses.read
    assert not any("b" in resource for resource in (*accesses.read, *accesses.written))


async def test_files_of_one_directory_are_independent(accesses):
    """What one writes the other neither reads nor writes, also when both are created."""
    disk = MemoryDisk({"d": Directory()})
    other = Accesses()
    with probe.observed_by(accesses):
        await disk.revise(("d", "a"), LIMIT, lambda _: b"new")
    with probe.observed_by(other):
        await disk.revise(("d", "b"), LIMIT, lambda _: b"new")
    assert not set(accesses.written) & {*other.written, *other.read}
    assert not set(other.written) & {*accesses.written, *accesses.read}


async def test_listing_depends_on_creating(accesses):
    """Who lists a directory is ordered with who makes a name in it."""
    disk = MemoryDisk({"d": Directory()})
    with probe.observed_by(accesses):
        disk.listdir("/workspace/d")
    other = Accesses()
    with probe.observed_by(other):
        await disk.revise(("d", "b"), LIMIT, lambda _: b"new")
    assert set(accesses.written) & set(other.read)


async def test_hard_links_touch_their_common_content(accesses):
    """A write under one name and a read under another depend on each other."""
    disk = MemoryDisk({"a": "old", "b": HardLink("a")})
    with probe.observed_by(accesses):
        await disk.revise(("a",), LIMIT, lambda _: b"new")
    other = Accesses()
    with probe.observed_by(other):
        await disk.read(("b",), 10)
    assert set(accesses.written) & set(other.read)


def test_identity_reads_what_it_goes_through(accesses):
    """Links and directories on the way are read, nothing is written, and the outside is one thing without a name."""
    disk = MemoryDisk({"way": Symlink("d"), "d/a": "", "out": Symlink("/private/secret")})
    with probe.observed_by(accesses):
        Workspace(disk).identify("way/a")
        Workspace(disk).identify("out")
    ways = [("disk",), ("disk", "d"), ("disk", "d", "a"), ("disk", "out"), ("disk", "way")]
    assert set(accesses.read) == {("disk", "/"), *ways}
    assert accesses.written == []


async def test_accesses_name_the_folded_entry(accesses):
    """Two spellings of one name are one resource."""
    disk = MemoryDisk({"Dir/A": ""}, fold=Folding(case=True))
    with probe.observed_by(accesses):
        await disk.read(("DIR", "a"), 10)
    assert accesses.read == [("disk", "dir"), ("disk", "dir", "a")]


async def test_accesses_name_the_folded_entry_of_one_folding_directory(accesses):
    """Also where only some directories fold."""
    disk = MemoryDisk({"Dir": Directory(fold=Folding(case=True)), "Dir/A": ""})
    with probe.observed_by(accesses):
        await disk.read(("Dir", "A"), 10)
    assert accesses.read == [("disk", "Dir"), ("disk", "Dir", "a")]


def test_times_are_the_virtual_clocks():
    """A file's time is the time of the simulation at which it was last written, under all its names."""
    disk = MemoryDisk({"a": "old", "b": "old", "c": HardLink("b")})

    async def program():
        await trio.sleep(1.5)
        await disk.revise(("a",), LIMIT, lambda _: b"new")
        await trio.sleep(1)
        await disk.revise(("b",), LIMIT, lambda _: b"new")
        return disk.now_ns()

    execution = sim.run(program)
    assert execution.value == 2_500_000_000
    times = [disk.lstat(f"/workspace/{name}").mtime_ns for name in "abc"]
    assert times == [1_500_000_000, 2_500_000_000, 2_500_000_000]


def test_twin_that_no_simulation_runs_on_has_no_time():
    """What is planted before a run begins is as old as the simulation."""
    disk = MemoryDisk({"a": "old"})
    assert (disk.now_ns(), disk.lstat("/workspace/a").mtime_ns) == (0, 0)


async def test_accesses_are_reported_after_the_checkpoint(accesses):
    """The step that has the effect is the step that reports it."""
    disk = MemoryDisk({"a": "old"})

    class Cut(trio.abc.Instrument):
        def before_task_step(self, task):
            accesses.steps.append([])

    cut = Cut()
    trio.lowlevel.add_instrument(cut)
    try:
        with probe.observed_by(accesses):
            await disk.revise(("a",), LIMIT, lambda _: b"new")
    finally:
        trio.lowlevel.remove_instrument(cut)
    written = [[resource[-1] for resource, write in step if write] for step in accesses.steps]
    assert [step for step in written if step] == [[".toolrt-0-a.tmp"], [".toolrt-0-a.tmp", "a"]]
    assert not accesses.steps[0]


# Copies of a real directory


def test_copy_of_has_all_that_the_real_one_has(tmp_path):
    """Files, links, hard links, empty directories and modes; not pipes."""
    (tmp_path / "d").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "d" / "a").write_bytes(b"one\r\n")
    (tmp_path / "d" / "a").chmod(0o750)
    (tmp_path / "b").hardlink_to(tmp_path / "d" / "a")
    (tmp_path / "l").symlink_to("d/a")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    disk = MemoryDisk.copy_of(tmp_path)
    expected = Workspace(tmp_path).snapshot()
    del expected["pipe"]
    assert Workspace(disk).snapshot() == expected
    found = disk.lstat(f"{tmp_path.resolve()}/d/a")
    assert (found.mode, found.links) == (0o750, 2)


async def test_copy_of_never_writes_to_the_real_one(tmp_path):
    """What happens to the twin does not show on the disk."""
    (tmp_path / "a").write_text("old")
    disk = MemoryDisk.copy_of(tmp_path)
    await disk.revise(("a",), LIMIT, lambda _: b"new")
    await disk.revise(("b",), LIMIT, lambda _: b"new")
    assert Workspace(tmp_path).snapshot() == {"a": b"old"}


def test_copy_of_is_mounted_where_the_real_one_is(tmp_path):
    """Absolute names and absolute links mean what they meant."""
    (tmp_path / "a").write_text("old")
    (tmp_path / "l").symlink_to(tmp_path / "a")
    workspace = Workspace(MemoryDisk.copy_of(tmp_path))
    assert workspace.identify(str(tmp_path / "a")).key == ("a",)
    assert workspace.identify("l").key == ("a",)


def test_copy_of_refuses_more_than_its_limit(tmp_path):
    """The limit itself is copied; a byte more is refused, by name."""
    (tmp_path / "a").write_text("12345")
    assert MemoryDisk.copy_of(tmp_path, limit=5).peek(("a",)) == b"12345"
    with pytest.raises(InputRefused, match="at most 4 bytes of files, got more \\(at a\\)"):
        MemoryDisk.copy_of(tmp_path, limit=4)


def test_copy_of_refuses_what_is_no_directory(tmp_path):
    """A missing directory and a file are refused with what to do."""
    (tmp_path / "a").write_text("")
    for path in (tmp_path / "missing", tmp_path / "a"):
        with pytest.raises(InputRefused):
            MemoryDisk.copy_of(path)


def test_special_files_can_be_planted():
    """A pipe stands for all that is never opened."""
    assert Workspace(MemoryDisk({"p": Special()})).snapshot() == {"p": "a named pipe"}


# Faults as a model is told of them


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.ENOSPC, "a: expected room on the disk, got none left. The file is as it was; free some space first."),
        (errno.EIO, "a: expected the disk to do as asked, got Input/output error. The file is as it was."),
        (errno.EACCES, "a: expected permission, got none for this file. Use a file that may be read and written."),
    ],
)
@pytest.mark.parametrize("effect", ["read", "write", "move"])
async def test_fault_is_told_without_a_path(call, effect, number, told):
    """The system's own text, which may quote a private path, is not passed on."""

    def fault(name, path):
        if name == effect:
            raise OSError(number, "secret", "/private/secret")

    tree = SimpleNamespace(workspace=Workspace(MemoryDisk({"a": "old"}, fault=fault)))
    with pytest.raises(FileProblem) as caught:
        await call(tree, "edit_file", path="a", old="old", new="new")
    assert str(caught.value) == told
    assert tree.workspace.snapshot() == {"a": b"old"}


async def test_pipe_swapped_in_before_the_read_is_told(call):
    """The disk's own check is the second line."""

    def swap(name, path):
        disk.put("a", Special())

    disk = MemoryDisk({"a": "old"}, fault=swap)
    with pytest.raises(FileProblem, match="got a named pipe"):
        await call(SimpleNamespace(workspace=Workspace(disk)), "read_file", path="a")


def test_directory_that_may_not_be_looked_into_is_refused(monkeypatch):
    """A failed look is a refusal, inside and outside, never an exception of the claims function."""
    disk = MemoryDisk({"d/a": "", "out": Symlink("/outside/a")})

    def refuse(path):
        if path.endswith("/a"):
            raise OSError(errno.EACCES, "secret", path)
        return MemoryDisk.lstat(disk, path)

    monkeypatch.setattr(disk, "lstat", refuse)
    workspace = Workspace(disk)
    assert str(workspace.identify("d/a").problem).startswith("d/a: expected permission")
    assert "leads outside" in str(workspace.identify("out").problem)
