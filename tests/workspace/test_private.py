"""No text made from an exception shows a path of the machine; what is inside the workspace is shown from its root."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolrt.workspace import FileProblem, MemoryDisk, Workspace
from toolrt.workspace.names._private import describe_error, without_private_paths

ROOT = "/home/me/repo"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("could not open /home/me/repo/src/a b.txt today", "could not open src/a b.txt today"),
        ("cp /home/me/repo/a /etc/b", "cp a the path"),
        ("root is /home/me/repo, yes", "root is ., yes"),
        ("/home/me/work2/x y.txt: permission denied", "the path: permission denied"),
        ("'/etc/pass wd' is missing", "'the path' is missing"),
        ("('/home/me/repo/a', '/etc/b')", "('a', 'the path')"),
        ("b'/etc/b'", "b'the path'"),
        ("-I/home/me/x", "-Ithe path"),
        ("-I/home/me/repo/x", "-Ix"),
        ("-I/opt/x -L /opt/y, x-I/opt", "-Ithe path, x-I/opt"),
        ("error:/etc/x", "error:the path"),
        ("~/notes, ~you/notes", "the path, the path"),
        ("file:///home/me/x", "the path"),
        ("sqlite:////home/me/db", "the path"),
        (r"C:\Users\me; \\server\me", "the path; the path"),
        ("../work2/x: no", "the path: no"),
        ("src/../../x is gone", "the path"),
        ("/home/me/repo/../x is gone", "the path"),
        ("'/home/me/repo/../x' is gone", "'the path' is gone"),
        ("'/home/me/repo/a/../x' is gone", "'x' is gone"),
        ("/home/me/repo/../x\nand /home/me/repo/y", "the path\nand y"),
        ("in //srv/secret/key: no", "in the path: no"),
        ("in ///home/me/repo//a/b, '//home/me/repo/a', '//srv/x'", "in a/b, 'a', 'the path'"),
        (r'{"file":"\/srv\/secret\/key"}, \/srv\/key: no', '{"file":"the path"}, the path: no'),
        (r'"\/home\/me\/repo\/a b"', '"a b"'),
        ("見つかりません/srv/secret/key: いいえ", "見つかりませんthe path: いいえ"),
        ("見つかりません/home/me/repo/src/a", "見つかりませんsrc/a"),
        # What is no path of the machine stays.
        ("資料/写真/a.png, größe/x, a//b, // note", "資料/写真/a.png, größe/x, a//b, // note"),
        ("expected 1/2 and/or src/a, ./b, n/a, a / b, wait...", "expected 1/2 and/or src/a, ./b, n/a, a / b, wait..."),
        ("src/../a, 'x/../b', 1..5, ..", "src/../a, 'x/../b', 1..5, .."),
        ("</tag> see https://example.org/home/me/x", "</tag> see https://example.org/home/me/x"),
    ],
)
def test_text_shows_paths_from_the_root_only(text: str, shown: str) -> None:
    """Inside: from the root.  Elsewhere: that there was a path."""
    assert without_private_paths(ROOT, text, ["/home/me"]) == shown


MOUNTS = {"docs": "/srv/my docs", "data": "/data", "more": "/srv/my docs2"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no /srv/my docs/x.md and no /home/me/repo/a.txt", "no docs/x.md and no a.txt"),
        ("-I/srv/my docs/x.md", "-Idocs/x.md"),
        ("at/srv/my docs", "atdocs"),
        ("in '/srv/my docs/sub/../x': gone", "in 'docs/x': gone"),
        ("in '/srv/my docs/../x': gone", "in 'the path': gone"),
        ("in /srv/my docs/../x: gone", "in the path: gone"),
        ("/srv/my docs2/x, /srv/my docs3/x", "more/x, the path"),
        # What is a single name is one in the middle of a relative path, too.
        ("/data/x, -I/data, src/data/x", "data/x, -Idata, src/data/x"),
    ],
)
def test_text_shows_mounted_paths_by_their_names(text: str, shown: str) -> None:
    """As they are reached from the root; what only begins alike is outside."""
    assert without_private_paths(ROOT, text, mounts=MOUNTS) == shown


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file", f"{ROOT}/a/b"), "FileNotFoundError: No such file: a/b"),
        (FileNotFoundError(errno.ENOENT, "No such file", "/etc/x"), "FileNotFoundError: No such file: the path"),
        (FileNotFoundError(errno.ENOENT, "No such file", b"/etc/x"), "FileNotFoundError: No such file: the path"),
        (FileNotFoundError(errno.ENOENT, "No such file", Path("../x")), "FileNotFoundError: No such file: the path"),
        (OSError(errno.EXDEV, "Cross", f"{ROOT}/a", None, "/etc/x"), "OSError: Cross: a -> the path"),
        (OSError(errno.EIO, "in /etc/x"), "OSError: in the path"),
        (OSError("/etc/x"), "OSError: the path"),
        (OSError(errno.EBADF, "Bad", 7), "OSError: Bad"),
        (ValueError(), "ValueError"),
        (FileProblem("a", "x", "y", "Do z."), "FileProblem: a: expected x, got y. Do z."),
        (ExceptionGroup("/etc", [ValueError("/etc/x"), KeyError("k")]), "ValueError: the path; KeyError: 'k'"),
    ],
)
def test_error_is_told_without_the_machine(error: BaseException, shown: str) -> None:
    """An error of the system is told by its reason and its file, any other by its text."""
    assert describe_error(ROOT, error) == shown


def test_error_whose_text_cannot_be_made_is_told_all_the_same() -> None:
    """Nothing is raised while an exception is told."""

    class Broken(Exception):
        def __str__(self) -> str:
            raise OSError("/etc/x")

    assert describe_error(ROOT, Broken()) == "Broken: (its text cannot be made: OSError)"


def test_workspace_at_the_top_of_a_disk_shows_paths_from_there() -> None:
    """A root of one slash is a root as well."""
    workspace = Workspace(MemoryDisk({"a": ""}, root="/"))
    assert workspace.describe_error(ValueError("/a and '/b/c'")) == "ValueError: a and 'b/c'"


_SECRET = "s3cret"
#: Directories and names, some with what a text may break a path at.
_part = st.sampled_from([_SECRET, f"my {_SECRET}", f"{_SECRET}.txt", "x", "a b", "é", "(x)", "-"])
_outside = st.builds(
    lambda start, parts: start + "/".join([*parts, _SECRET]),
    st.sampled_from(
        ["/", "/etc/", "/home/me/", "/home/me/worker/", "~/", "../", "a/../../", f"{ROOT}/../", "file:///"]
    ),
    st.lists(_part, max_size=3),
)


@given(
    path=_outside,
    before=st.sampled_from(["", "cannot open ", "x=", "(", "[Errno 2] no: ", "<", "in ", "'", '"', "`", "a\n"]),
    after=st.sampled_from(["", ": gone", ", gone", " is gone", ")", "\n/x"]),
)
@example("/etc/s3cret", "<", "")
def test_no_text_shows_a_name_from_outside(path: str, before: str, after: str) -> None:
    """Wherever a private path stands in a text, none of its names comes out."""
    quote = before if before in ("'", '"', "`") else ""
    shown = describe_error(ROOT, ValueError(f"{before}{path}{quote}{after}"), ["/home/me"])
    assert _SECRET not in shown
    assert "/home" not in shown


@given(
    parts=st.lists(st.sampled_from(["a", "b c", "é.txt", "d-e"]), min_size=1, max_size=4), quote=st.sampled_from("'\" ")
)
def test_text_keeps_what_is_inside(parts: list[str], quote: str) -> None:
    """A path inside is shown whole, from the root."""
    path = "/".join(parts)
    assert without_private_paths(ROOT, f"no {quote}{ROOT}/{path}{quote} here") == f"no {quote}{path}{quote} here"


def test_real_error_of_the_system_shows_the_file_from_the_root(tmp_path: Path) -> None:
    """What Python itself raises, inside the workspace and beside it."""
    (tmp_path / "repo").mkdir()
    workspace = Workspace(tmp_path / "repo")
    for name, shown in (("repo/no", "no"), ("beside", "the path")):
        with pytest.raises(FileNotFoundError) as caught:
            os.stat(os.path.realpath(tmp_path / name))
        assert workspace.describe_error(caught.value) == f"FileNotFoundError: No such file or directory: {shown}"
