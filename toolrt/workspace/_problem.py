"""The refusal that a file tool raises, with a text for the model.

Rules.  The text shows workspace-relative paths only. It never shows an absolute path, a name outside the workspace, or
the text of an `OSError`, which may quote either.
"""

from __future__ import annotations

import errno
import os
import re

from toolrt.workspace.disk._disk_errors import Changed, DiskBusy, Inseparable, NotRegular, TooLarge

#: Stands where a path would stand that must not be shown.
UNSHOWN = "the path"


class FileProblem(Exception):
    """A file tool refused, and says why; unless the text says otherwise, no file was changed.

    Attributes:
        path: the file, relative to the workspace's root; ``"the path"`` when it may not be shown.
        expected: what was expected there.
        got: what was there.
        remedy: what to do next; a sentence.
        retryable: whether the same call, sent again, may succeed.
    """

    def __init__(self, path: str, expected: str, got: str, remedy: str, *, retryable: bool = False) -> None:
        self.path = path
        self.expected = expected
        self.got = got
        self.remedy = remedy
        self.retryable = retryable
        super().__init__(_legible(f"{path}: expected {expected}, got {got}. {remedy}"))


def _legible(text: str) -> str:
    """The `text` without characters that move a cursor, turn the line around, or that UTF-8 cannot encode."""
    return text if text.isprintable() else _DECEIVING.sub(lambda found: repr(found[0])[1:-1], text)


#: Control characters but tab and line feed, those that set the direction of writing, and halves of surrogate pairs.
_DECEIVING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_BY_ERRNO: dict[int, tuple[str, str, str]] = {
    errno.ENOENT: ("a file", "nothing of that name", "Check the name, or create the file with write_file."),
    errno.EISDIR: ("a file", "a directory", "Name a file inside it."),
    errno.ENOTDIR: (
        "directories all along the path",
        "something else in a directory's place",
        "Check the names of the directories.",
    ),
    errno.ELOOP: (
        "a path that ends somewhere",
        "symbolic links that lead in a circle, or that changed meanwhile",
        "Name the file itself.",
    ),
    errno.ENAMETOOLONG: ("a name the disk can hold", "a longer one", "Use a shorter name."),
    errno.EXDEV: ("a target on the same disk", "one on another", "Write it there and delete it here."),
    errno.EACCES: ("permission", "none for this file", "Use a file that may be read and written."),
    errno.EPERM: ("permission", "none for this file", "Use a file that may be read and written."),
    errno.EBUSY: ("what can go from its place", "a mount, or one inside", "Nothing was changed."),
    errno.EROFS: ("a disk that can be written", "a read-only one", "Nothing was changed."),
    errno.ENOSPC: ("room on the disk", "none left", "The file is as it was; free some space first."),
    errno.EDQUOT: ("room on the disk", "none left", "The file is as it was; free some space first."),
}


def from_os_error(path: str, error: OSError) -> FileProblem:
    """What to tell the model about `error`, without what its own text may give away."""
    if isinstance(error, TooLarge):
        return FileProblem(
            path,
            f"at most {error.limit} bytes",
            f"{error.size} bytes",
            "Files this large are not edited; read_file gives some lines of one with offset and limit, or with tail.",
        )
    if isinstance(error, NotRegular):
        return FileProblem(path, "a regular file", error.kind.value, "It was not opened.")
    if isinstance(error, Changed):
        return changed_since(path)
    if isinstance(error, DiskBusy):
        return FileProblem(
            path,
            "a turn to change it",
            "another toolrt process that went on changing it",
            "Nothing was changed; send the call again.",
            retryable=True,
        )
    if isinstance(error, Inseparable):
        return FileProblem(
            path,
            "a file whose names are all in the workspace, or that can be copied with its owner",
            "one with names elsewhere, of another owner",
            "Nothing was changed, as it would change there too; write a file of another name.",
        )
    number = error.errno or 0
    if number in _BY_ERRNO:
        return FileProblem(path, *_BY_ERRNO[number])
    return FileProblem(path, "the disk to do as asked", os.strerror(number), "The file is as it was.")


def changed_since(path: str) -> FileProblem:
    """The refusal of a change to a file that is not what it was seen to be."""
    return FileProblem(
        path,
        "the content this workspace last saw",
        "another one: another writer changed it since",
        "Nothing was changed; read it again.",
    )
