"""One key for every name of a file, on the real disk and on the twin."""

from __future__ import annotations

from pathlib import PurePath

import attrs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolrt.errors import DefinitionRefused
from toolrt.model import READ, WRITE, Claim, State
from toolrt.workspace import Directory, HardLink, Kind, MemoryDisk, Special, Symlink, Wanted, Workspace
from toolrt.workspace.disk._disk import Folding
from toolrt.workspace.names import _identity

FILE, DIRECTORY, ENTRY = Wanted.FILE, Wanted.DIRECTORY, Wanted.ENTRY

A = ("src", "a.txt")


@pytest.fixture
def src(tree):
    """A tree with one file, two levels deep."""
    tree.put("src/a.txt", "text")
    return tree


#: What a name goes through, so that no name needs a tree of its own; `{root}` and `{outside}` are the tree's.
_WAYS = {
    "sub": Directory(),
    "way": Symlink("src"),
    "link": Symlink("src/a.txt"),
    "absolute": Symlink("{root}/src/a.txt"),
    "one": Symlink("d/two"),
    "d/two": Symlink("../three"),
    "three": Symlink("src/a.txt"),
    "dangling": Symlink("src/new.txt"),
    "far/deep/b.txt": "",
    "near": Symlink("far/deep"),
    "{outside}/back": Symlink("{root}/src"),
    "out": Symlink("{outside}/back"),
    "pipe": Special(),
    "circle": Symlink("turn"),
    "turn": Symlink("circle"),
}


@pytest.fixture
def ways(src):
    """The tree with links to the file, and to what is not there."""
    for path, what in _WAYS.items():
        target = Symlink(what.target.format(root=src.root, outside=src.outside)) if isinstance(what, Symlink) else what
        src.put(path.format(outside=src.outside), target)
    return src


@pytest.mark.parametrize(
    ("path", "working_dir", "key"),
    [
        ("src/a.txt", None, "src/a.txt"),
        ("a.txt", "src", "src/a.txt"),  # the state's working directory counts, not the process's
        ("a.txt", "{root}/src", "src/a.txt"),
        ("a.txt", "way", "src/a.txt"),
        ("../src/a.txt", "way", "src/a.txt"),
        ("{root}/src/a.txt", None, "src/a.txt"),
        ("{root}/src/a.txt", "{outside}", "src/a.txt"),
        ("././src/./a.txt", None, "src/a.txt"),
        ("src///a.txt", None, "src/a.txt"),
        ("//{root}//src/a.txt", None, "src/a.txt"),
        ("sub/../src/a.txt", None, "src/a.txt"),  # the ticket's case
        ("../repo/src/a.txt", None, "src/a.txt"),  # a name may leave the workspace, if it comes back
        ("out/a.txt", None, "src/a.txt"),  # and so may a link
        ("near/../../src/a.txt", None, "src/a.txt"),  # behind a link the parent is that of its target
        ("near/../x", None, "far/x"),
        ("later/../src/a.txt", None, "src/a.txt"),
        ("x/../" * 300 + "src/a.txt", None, "src/a.txt"),  # a detour does not count for the depth
        ("link", None, "src/a.txt"),
        ("absolute", None, "src/a.txt"),
        ("one", None, "src/a.txt"),  # each link is relative to where it stands
        ("way/a.txt", None, "src/a.txt"),
        ("way/new.txt", None, "src/new.txt"),
        ("dangling", None, "src/new.txt"),
        ("~/repo/src/a.txt", None, "src/a.txt"),
        ("~a.txt", None, "~a.txt"),  # only a tilde alone stands for the home directory
        ("./~/a.txt", None, "~/a.txt"),
        ("\u00e4" * 127 + "a", None, "\u00e4" * 127 + "a"),  # 255 bytes in fewer characters
        ("x/" * 255 + "a", None, "x/" * 255 + "a"),  # 256 parts
    ],
)
def test_name_has_the_key_of_its_file(ways, path, working_dir, key):
    """However it is spelled, through links or not, and whether the file is there or not."""
    state = State(working_dir=working_dir.format(root=ways.root, outside=ways.outside)) if working_dir else None
    assert ways.key(path.format(root=ways.root), state) == tuple(key.split("/"))


@pytest.mark.parametrize(("path", "made"), [("src/new.txt", None), ("x/y/new.txt", None), ("later/../a", "later/b")])
def test_missing_file_keeps_its_key_when_created(src, path, made):
    """The key does not depend on whether the file, or a directory on its way, exists."""
    before = src.key(path)
    src.put(made or path)
    assert src.key(path) == before


async def test_replaced_file_keeps_its_key(src):
    """The inode changes, the key does not."""
    before = src.key("src/a.txt")
    await src.disk.revise(A, 1000, lambda _: b"new")
    assert src.key("src/a.txt") == before


def test_tilde_without_a_home_is_refused():
    """A twin without a home directory does not guess."""
    identity = Workspace(MemoryDisk()).identify("~/a.txt")
    assert identity.key is None
    assert "home directory" in str(identity.problem)


def test_workspace_reached_through_a_link_has_the_same_keys(tmp_path):
    """The root's own links are resolved once; names spelled through them still mean the workspace."""
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    workspace = Workspace(tmp_path / "alias")
    assert workspace.identify(str(tmp_path / "alias" / "a.txt")).key == ("a.txt",)
    assert workspace.identify(str(tmp_path / "real" / "a.txt")).key == ("a.txt",)


def test_hard_links_share_a_claim(src):
    """Two names of one file have two keys and one claim in common."""
    src.put("b.txt", HardLink("src/a.txt"))
    first = src.workspace.claims("src/a.txt", State(), WRITE)
    second = src.workspace.claims("b.txt", State(), READ)
    assert any(one.conflicts_with(other) for one in first for other in second)
    assert first[1].resource[0] == second[1].resource[0] == "links"


def test_hard_links_are_one_file_in_events(src):
    """Events name the file, whichever name it is reached by."""
    src.put("b.txt", HardLink("src/a.txt"))
    assert src.workspace.identify("b.txt").event_name == src.workspace.identify("src/a.txt").event_name


def test_file_with_one_name_claims_no_links(src):
    """What has no other names waits for nothing else."""
    assert src.workspace.claims("src/a.txt", State(), WRITE) == (
        Claim(("file", "src", "a.txt"), WRITE),
        Claim(("file", "src"), READ),
    )


def test_claims_name_every_directory_and_link_passed(src):
    """Who moves one of them is ordered with everyone who went through."""
    src.put("link", Symlink("way/a.txt"))
    src.put("way", Symlink("src"))
    assert src.workspace.claims("link", State(), READ) == (
        Claim(("file", "src", "a.txt"), READ),
        Claim(("file", "link"), READ),
        Claim(("file", "way"), READ),
        Claim(("file", "src"), READ),
    )


@pytest.mark.parametrize("moved", ["src", "way"])
def test_moving_what_a_name_goes_through_conflicts(src, moved):
    """A move claims WRITE on the entry's subtree."""
    src.put("way", Symlink("src"))
    move = Claim(("file", moved), WRITE, subtree=True)
    assert any(move.conflicts_with(claim) for claim in src.workspace.claims("way/a.txt", State(), READ))


def test_files_of_one_directory_do_not_conflict(src):
    """Two new files in a directory that is missing too wait for nothing."""
    first = src.workspace.claims("new/a.txt", State(), WRITE)
    second = src.workspace.claims("new/b.txt", State(), WRITE)
    assert not any(one.conflicts_with(other) for one in first for other in second)


def test_claims_stay_when_the_file_is_created(src):
    """A sibling that makes the directory changes no claim."""
    before = src.workspace.claims("x/new.txt", State(), WRITE)
    src.put("x/other.txt")
    assert src.workspace.claims("x/new.txt", State(), WRITE) == before


# What is refused.


def problem(tree, path, state=None):
    """Why `path` is refused; its claims must then be harmless."""
    identity = tree.workspace.identify(path, state)
    assert identity.problem is not None
    return str(identity.problem)


OUTSIDE = (
    "the path: expected a path inside the workspace, got one that leads outside. Name a file inside the workspace."
)


@pytest.mark.parametrize("path", ["../outside/secret", "/etc/passwd", "/", "..", "../worker/a.txt", "~/outside/secret"])
def test_name_outside_is_refused_without_showing_it(src, path):
    """The text is the same wherever outside the name leads."""
    src.put(f"{src.outside}/secret", "secret")
    assert problem(src, path) == OUTSIDE


@pytest.mark.parametrize(
    "target", ["../outside/secret", "/etc/passwd", "{outside}/secret", "{outside}/missing", "{outside}/secret/x"]
)
def test_link_that_leads_outside_is_refused_without_showing_where(src, target):
    """Nor does it tell whether there is something, or what."""
    src.put(f"{src.outside}/secret", "secret")
    src.put("link", Symlink(target.format(outside=src.outside)))
    assert problem(src, "link") == OUTSIDE


def test_working_directory_outside_is_refused(src):
    """A relative name from outside stays outside."""
    assert problem(src, "a.txt", State(working_dir=src.outside)) == OUTSIDE


@pytest.mark.parametrize("path", ["/etc/passwd", "", "a\0b", "x" * 256, "\ud800"])
def test_refused_name_claims_a_harmless_read(src, path):
    """The claims function never raises, and what it claims stands in nobody's way."""
    for mode in (READ, WRITE):
        assert src.workspace.claims(path, State(), mode) == (Claim(("refused",), READ),)


def test_refused_name_still_claims_what_it_went_through(src):
    """Whether a link leads outside depends on the link."""
    src.put("link", Symlink(src.outside))
    assert src.workspace.claims("link/a.txt", State(), WRITE) == (Claim(("file", "link"), READ),)


def test_symlinks_in_a_row_are_bounded(src):
    """Forty links are followed, one more is not."""
    src.put("link0", Symlink("src/a.txt"))
    for number in range(1, 41):
        src.put(f"link{number}", Symlink(f"link{number - 1}"))
    assert src.key("link39") == A
    assert "circle" in problem(src, "link40")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "empty"),
        ("a\0b", "NUL"),
        ("a\ud800", "surrogate"),
        *[(path, "at most") for path in ("x" * 256, "\u00e4" * 128, "src/" + "x" * 256 + "/a", "x/" * 2100)],
        ("x/" * 256 + "a", "at most 256 directories deep"),
        *[(path, "lead in a circle") for path in ("circle", "circle/a.txt")],
        *[(path, "expected a file, got a directory") for path in ("src", "src/", "src/.", "src/..", ".", "way")],
        *[(path, "got a file") for path in ("src/a.txt/", "src/a.txt/.", "src/a.txt/../a.txt")],
        ("src/new/", "the name of a directory"),
        ("src/a.txt/b", "src/a.txt: expected a directory, got a file."),
        ("pipe", "got a named pipe"),
    ],
)
def test_name_of_no_file_is_refused(ways, path, why):
    """Before the disk is asked where the name alone says it; the text says what was wrong."""
    assert why in problem(ways, path)


def test_way_that_becomes_too_long_is_refused(src):
    """What links make longer than the system takes is refused as well, though no directory of it exists."""
    src.put("deep", Symlink("/".join(["x" * 200] * 15)))
    assert src.key("deep/" + "/".join(["y" * 200] * 2)) is not None
    assert "a name the disk can hold" in problem(src, "deep/" + "/".join(["y" * 200] * 10))


# What is wanted.


def wanted(tree, path, what, state=None):
    """What `path` means where `what` is wanted."""
    return tree.workspace.identify(path, state, what)


@pytest.mark.parametrize("path", ["src", "src/", "src/.", "way", "way/", "src/../src", "~/repo/src"])
def test_directory_has_one_key(src, path):
    """Where a directory is wanted, every name of it has its key, through links too."""
    src.put("way", Symlink("src"))
    identity = wanted(src, path, DIRECTORY)
    assert (identity.key, identity.problem) == (("src",), None)
    assert identity.found.kind is Kind.DIRECTORY


@pytest.mark.parametrize("path", [".", "", "src/..", "./", "{root}", "{root}/", "~/repo", "../repo"])
def test_root_is_a_directory_without_parts(src, path):
    """The workspace's own directory has the empty key, and is looked at for what it is."""
    path = path.format(root=src.root) or "src/../."
    identity = wanted(src, path, DIRECTORY)
    assert (identity.key, identity.entry, identity.path, identity.problem) == ((), (), ".", None)
    assert identity.found == src.disk.lstat(src.root)


@pytest.mark.parametrize("path", [".", "src/..", "{root}"])
@pytest.mark.parametrize("what", [FILE, ENTRY])
def test_root_is_neither_file_nor_entry(src, path, what):
    """It can be listed; it cannot be read, moved or deleted."""
    assert wanted(src, path.format(root=src.root), what).problem is not None


def test_missing_directory_may_be_named_with_a_slash(src):
    """A directory that is to be made has its key before it stands there."""
    identity = wanted(src, "src/new/", DIRECTORY)
    assert (identity.key, identity.found, identity.problem) == (("src", "new"), None, None)


def test_file_is_no_directory(src):
    """Who wants a directory is told what stands there instead."""
    assert "expected a directory, got a file" in str(wanted(src, "src/a.txt", DIRECTORY).problem)
    src.put("pipe", Special())
    assert "expected a directory, got a named pipe" in str(wanted(src, "pipe", DIRECTORY).problem)


def test_entry_is_the_link_itself(src):
    """What is moved or deleted by a link's name is the link."""
    src.put("link", Symlink("src/a.txt"))
    identity = wanted(src, "link", ENTRY)
    assert (identity.key, identity.found.kind, identity.problem) == (("link",), Kind.SYMLINK, None)
    assert identity.through == ()


def test_entry_goes_through_links_on_the_way(src):
    """Only the last part is meant itself."""
    src.put("way", Symlink("src"))
    src.put("src/link", Symlink("a.txt"))
    identity = wanted(src, "link", ENTRY, State(working_dir="way"))
    assert (identity.key, identity.through) == (("src", "link"), (("way",), ("src",)))


@pytest.mark.parametrize("target", ["/etc/passwd", "{outside}", "link", "missing/x"])
def test_entry_may_be_a_link_to_anywhere(src, target):
    """A link that leads outside, nowhere or in a circle can be deleted: it is not followed."""
    src.put("link", Symlink(target.format(outside=src.outside)))
    identity = wanted(src, "link", ENTRY)
    assert (identity.key, identity.problem) == (("link",), None)


@pytest.mark.parametrize("path", ["link/", "link//"])
def test_entry_that_is_a_link_with_a_slash_is_refused(src, path):
    """Whether the link or what it leads to is meant, must be said; nothing is taken for granted."""
    src.put("link", Symlink("src"))
    assert "expected a directory, got a symbolic link" in str(wanted(src, path, ENTRY).problem)


def test_entry_may_be_a_directory_or_a_special_file(src):
    """Their names can be moved and deleted; nothing of it opens them."""
    src.put("pipe", Special())
    assert wanted(src, "pipe", ENTRY).problem is None
    assert wanted(src, "src", ENTRY).problem is wanted(src, "src/", ENTRY).problem is None


def test_entry_that_is_missing_has_a_key(src):
    """Where something is to be moved to."""
    identity = wanted(src, "src/new", ENTRY)
    assert (identity.key, identity.found, identity.problem) == (("src", "new"), None, None)
    assert "the name of a directory" in str(wanted(src, "src/new/", ENTRY).problem)


@pytest.mark.parametrize("what", [FILE, DIRECTORY, ENTRY])
@pytest.mark.parametrize("path", ["../outside/secret", "/etc/passwd", "/", "..", "~", "~/outside", "way/x", "../work2"])
def test_outside_is_refused_whatever_is_wanted(src, path, what):
    """With the same text, that shows nothing of it."""
    src.put("way", Symlink(src.outside))
    identity = wanted(src, path, what)
    assert (identity.key, str(identity.problem)) == (None, OUTSIDE)


@pytest.mark.parametrize("path", ["src/b.txt", "src/a.txt", "src/deep/er", "way/a.txt"])
@pytest.mark.parametrize("mode", [READ, WRITE])
def test_subtree_conflicts_with_what_is_below(src, path, mode):
    """Who lists, moves or deletes a directory is ordered with who writes in it, by whatever name."""
    src.put("way", Symlink("src"))
    above = src.workspace.claims("src", State(), mode, wanted=DIRECTORY, subtree=True)
    below = src.workspace.claims(path, State(), WRITE)
    assert any(one.conflicts_with(other) for one in above for other in below)


def test_subtree_conflicts_with_files_of_several_names(src):
    """A file below may have another name that is not below."""
    src.put("b.txt", HardLink("src/a.txt"))
    edit = src.workspace.claims("b.txt", State(), WRITE)
    for what, mode in ((DIRECTORY, READ), (DIRECTORY, WRITE), (ENTRY, WRITE)):
        above = src.workspace.claims("src", State(), mode, wanted=what, subtree=True)
        assert any(one.conflicts_with(other) for one in above for other in edit)


def test_moves_of_different_entries_do_not_conflict(src):
    """Who changes names only does not wait for others who do."""
    first = src.workspace.claims("src", State(), WRITE, wanted=ENTRY, subtree=True)
    second = src.workspace.claims("other", State(), WRITE, wanted=ENTRY, subtree=True)
    assert not any(one.conflicts_with(other) for one in first for other in second)


def test_subtree_of_the_root_is_every_file(src):
    """A claim on the root's subtree holds any file, there or not."""
    above = src.workspace.claims(".", State(), READ, wanted=DIRECTORY, subtree=True)
    assert above[0] == Claim(("file",), READ, subtree=True)
    assert all(any(one.covers(other) for one in above) for other in src.workspace.claims("src/x/y", State(), READ))


_PARTS = st.sampled_from(["a", "A", "b", "link", "fifo", "..", ".", "", "~", "\u00e9"])
_PATHS = st.one_of(
    st.lists(_PARTS, min_size=1, max_size=5).map("/".join),
    st.lists(_PARTS, min_size=1, max_size=4).map(lambda parts: "/".join(("/home/repo", *parts))),
    st.sampled_from(["/", "/home", "/home/repository/a", "~/repo/a", "a\0", "a" * 300, "a/" * 300 + "a"]),
)
_TREES = st.dictionaries(
    st.sampled_from(["a/a", "a/b", "a/link", "b", "link", "A/b", "fifo", "\u00e9/a"]),
    st.sampled_from(["text", Directory(), Symlink("a"), Symlink("/home/repo/b"), Symlink("../.."), Special(Kind.FIFO)]),
)


@pytest.mark.seldom
@settings(max_examples=300)
@given(_TREES, _PATHS, st.one_of(st.none(), _PATHS), st.sampled_from(Wanted), st.booleans())
def test_the_short_way_finds_what_the_walk_finds(tree, path, working_dir, what, folds):
    """A name that leads straight down is not walked, and means the same."""
    try:
        disk = MemoryDisk(tree, root="/home/repo", home="/home", fold=Folding(case=folds, unicode=folds))
    except DefinitionRefused:
        assume(False)
    place = None if working_dir is None else PurePath(working_dir)
    short = _identity.identify(disk, path, place, what)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_identity, "_straight", lambda *_: None)
        walked = _identity.identify(disk, path, place, what)
    said = [None if found.problem is None else str(found.problem) for found in (short, walked)]
    assert said[0] == said[1]
    assert attrs.evolve(short, problem=None) == attrs.evolve(walked, problem=None)
