"""Which commands only read: a list of programs, and of what each may be told.

Rules.  It fails closed.  A program that is not here, an option that is not here, a word that is not clear: then the
command is not read-only and runs alone.  Being wrong in that direction costs time; in the other it would let a change
overlap a read.

Theory.  Most programs that "only read" can write or start another by some option (``sort -o``, ``find -delete``, ``sed
w``, ``rg --pre``, ``uniq in out``), so options are listed, not excluded.  A program has `_ANY` only where no option
of it writes or starts anything.  git reads a repository's own configuration, which may name programs: what would run
one is left out (``status`` and ``diff`` may run a filter, ``log -p`` a converter), the rest is overruled in the
command's environment (`toolrt.services._environment.outside`).

Limits.  It judges texts, not programs: it believes that ``cat`` is cat.  Devices are not recognised by another name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import attrs

from toolrt.services._words import Unclear, Word, simple_commands


def only_reads(text: str) -> bool:
    """Whether the command `text` was recognised as one that changes nothing and starts nothing that stays.

    Checkpoint: never.
    """
    try:
        return all(map(_only_reads, simple_commands(text)))
    except Unclear:
        return False


def _only_reads(words: list[Word]) -> bool:
    program, *rest = words
    if program.glob or any(_may_be_device(word) for word in rest):
        return False
    allowed = _PROGRAMS.get(program.text)
    return allowed is not None and allowed(rest)


def _may_be_device(word: Word) -> bool:
    if word.glob and word.text.startswith("/"):
        return True
    return "/dev/" in word.text and word.text != "/dev/null"


_Allowed = Callable[[Sequence[Word]], bool]


def _any(words: Sequence[Word]) -> bool:
    return True


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


@attrs.frozen
class _Options:
    """Options that may be given, and how many operands; all others are refused."""

    #: Letters that may stand alone or together behind one dash.
    letters: str = ""
    #: Letters that take what follows, or the next word.
    with_value: str = ""
    #: Long options, with or without ``=value``.
    long: frozenset[str] = attrs.field(default="", converter=_names)
    #: Long options that take the next word where there is no ``=``.
    long_with_value: frozenset[str] = attrs.field(default="", converter=_names)
    #: How many operands there may be; None: any number.
    operands: int | None = None
    #: Whether ``-20`` is a number of lines.
    number: bool = False

    def __call__(self, words: Sequence[Word]) -> bool:
        return self.split(words) is not None

    def split(self, words: Sequence[Word]) -> tuple[list[str], list[Word]] | None:
        """The options (without their values) and the operands; None: something is not allowed."""
        options: list[str] = []
        operands: list[Word] = []
        pending = list(words)[::-1]
        while pending:
            word = pending.pop()
            text = word.text
            if word.glob_first or (word.glob and text.startswith("-")):
                return None
            if text == "--":
                operands += pending[::-1]
                # What a pattern becomes behind it is an operand, whatever it begins with.
                break
            if not text.startswith("-") or text == "-":
                operands.append(word)
            elif self.number and text[1:].isdecimal():
                options.append("-number")
            else:
                taken = self._long(text, pending) if text.startswith("--") else self._short(text, pending)
                if taken is None:
                    return None
                options += taken
        if self.operands is not None and (len(operands) > self.operands or any(word.glob for word in operands)):
            return None
        return options, operands

    def _long(self, text: str, pending: list[Word]) -> list[str] | None:
        name, equals, _ = text[2:].partition("=")
        if name in self.long_with_value:
            return [f"--{name}"] if equals or _took_value(pending) else None
        return [f"--{name}"] if name in self.long else None

    def _short(self, text: str, pending: list[Word]) -> list[str] | None:
        found = []
        for place, letter in enumerate(text[1:], 2):
            found.append(f"-{letter}")
            if letter in self.with_value:
                return found if place < len(text) or _took_value(pending) else None
            if letter not in self.letters:
                return None
        return found


def _took_value(pending: list[Word]) -> bool:
    """Take the next word as an option's value; a pattern may become several words, or one that is no value."""
    return bool(pending) and not pending.pop().glob


def _printf(words: Sequence[Word]) -> bool:
    # -v sets a variable, PATH for one; in some shells so does %n.
    return not words or not (words[0].glob or words[0].text.startswith("-") or "%n" in words[0].text)


def _date(words: Sequence[Word]) -> bool:
    # Any other operand sets the clock.
    split = _Options("uR", "dr", "utc universal rfc-email iso-8601 rfc-3339", "date reference").split(words)
    return split is not None and all(word.text.startswith("+") for word in split[1])


def _command(words: Sequence[Word]) -> bool:
    return bool(words) and words[0].text in ("-v", "-V")


#: Scripts that only print: some lines, or lines with something else in a text's place.
_SED = re.compile(
    r"(?:\d+|\$)(?:,(?:\d+|\$|\+\d+))?[pdq](?:;(?:\d+|\$)(?:,(?:\d+|\$|\+\d+))?[pdq])*"
    r"|/[^/\\\n]*/[pd]|s/[^/\\\n]*/[^/\\\n]*/[gpI\d]*"
)


def _sed(words: Sequence[Word]) -> bool:
    split = _Options("nEr", long="quiet silent regexp-extended").split(words)
    if split is None or not split[1]:
        return False
    script, *files = split[1]
    return not script.glob and _SED.fullmatch(script.text) is not None and not any(file.glob_first for file in files)


_FIND = _names(
    "( ) ! , -a -and -o -or -not -print -print0 -ls -empty -true -false -readable -writable -executable -nouser "
    "-nogroup -prune -quit -depth -mount -xdev -daystart -noleaf"
)
_FIND_WITH_VALUE = _names(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -mtime -mmin -atime "
    "-amin -ctime -cmin -newer -anewer -cnewer -maxdepth -mindepth -perm -user -group -uid -gid -links -inum -samefile "
    "-lname -ilname -printf"
)


def _find(words: Sequence[Word]) -> bool:
    pending = list(words)[::-1]
    while pending and pending[-1].text in ("-H", "-L", "-P"):
        pending.pop()
    while pending and not pending[-1].text.startswith(("-", "(", "!", ",")):
        if pending.pop().glob_first:
            return False
    while pending:
        word = pending.pop()
        if word.glob:
            return False
        if word.text in _FIND_WITH_VALUE:
            if not _took_value(pending):
                return False
        elif word.text not in _FIND:
            return False
    return True


_LOG = _Options(
    "z",
    "n",
    "oneline graph all branches tags remotes decorate no-decorate abbrev-commit no-abbrev-commit reverse merges "
    "no-merges first-parent name-only name-status no-color topo-order date-order no-patch parents count",
    "since until after before author committer grep format pretty max-count skip date abbrev",
    number=True,
)


def _git_log(words: Sequence[Word]) -> bool:
    # %G asks gpg about a signature.
    return _LOG(words) and not any("%G" in word.text for word in words)


def _git_listing(options: _Options, *listing: str) -> _Allowed:
    """Commands that list where there is no operand, or one of the options `listing` says so, and else change."""

    def allowed(words: Sequence[Word]) -> bool:
        split = options.split(words)
        return split is not None and (not split[1] or not set(listing).isdisjoint(split[0]))

    return allowed


def _git_config(words: Sequence[Word]) -> bool:
    split = _Options("l", long="get get-all list show-origin local global name-only").split(words)
    if split is None:
        return False
    options, operands = split
    return (
        len(operands) == 1
        if {"--get", "--get-all"} & set(options)
        else bool(options) and not operands and bool({"--list", "-l"} & set(options))
    )


#: A file or directory as it was, and nothing that could be a commit: of that, the changes are shown.
_FILE_AS_IT_WAS = re.compile(r"[\w./@~\-]+:[^:]*")


def _git_show(words: Sequence[Word]) -> bool:
    split = _Options().split(words)
    return split is not None and bool(split[1]) and all(_FILE_AS_IT_WAS.fullmatch(word.text) for word in split[1])


_GIT: dict[str, _Allowed] = {
    "branch": _git_listing(_Options("arv", long="all remotes list show-current no-color"), "--list"),
    "cat-file": _Options("ptse"),
    "config": _git_config,
    "describe": _Options("", long="tags all always long exact-match", long_with_value="abbrev match"),
    "for-each-ref": _any,
    "grep": _Options("niIlLwcEFGhHvoq", "eABCm", "cached line-number ignore-case word-regexp count name-only"),
    "log": _git_log,
    "ls-files": _Options("cosuzi", long="cached others stage exclude-standard full-name error-unmatch"),
    "ls-tree": _any,
    "merge-base": _any,
    "remote": _Options("v", operands=0),
    "rev-list": _git_log,
    "rev-parse": _any,
    "show": _git_show,
    "show-ref": _any,
    "tag": _git_listing(_Options("l", long="list"), "-l", "--list"),
}


def _git(words: Sequence[Word]) -> bool:
    if any(word.glob_first for word in words):
        return False
    pending = list(words)
    while pending and pending[0].text in ("--no-pager", "--no-optional-locks"):
        del pending[0]
    if pending and pending[0].text == "--version":
        return True
    if not pending or pending[0].glob:
        return False
    allowed = _GIT.get(pending[0].text)
    return allowed is not None and allowed(pending[1:])


#: Programs that have no option that writes or starts another program.
_ANY = (
    ": arch b2sum basename cat cksum cmp column comm cut df dirname du echo egrep expand false fgrep fold grep groups "
    "head hexdump id join jq ls md5sum nl nproc od paste printenv pwd readlink realpath rev seq sha1sum sha256sum "
    "sha512sum sleep stat tail tr true tsort type uname unexpand wc which whoami"
)

_PROGRAMS: dict[str, _Allowed] = {
    **dict.fromkeys(_ANY.split(), _any),
    "command": _command,
    "date": _date,
    "diff": _Options(
        "abBcEiNqrsuwy", "CUWx", "brief recursive unified side-by-side ignore-all-space new-file", "exclude"
    ),
    "file": _Options("biLkh", long="brief mime mime-type mime-encoding dereference"),
    "find": _find,
    "git": _git,
    "printf": _printf,
    "rg": _Options(
        "aciFHhIlLnNopPqSsuUvwx",
        "ABCegtTmMd",
        "hidden no-ignore ignore-case line-number no-line-number files files-with-matches files-without-match count "
        "word-regexp fixed-strings no-heading heading multiline only-matching smart-case type-list no-messages follow "
        "json stats invert-match",
        "glob iglob type type-not max-count max-depth context after-context before-context regexp color sort",
    ),
    "sed": _sed,
    "sort": _Options(
        "bdfghiMnrRsuVzcC",
        "kt",
        "reverse unique numeric-sort human-numeric-sort version-sort ignore-case stable check",
        "key field-separator",
    ),
    "tree": _Options("adfipshugDFrtCQnJXx", "LPI", "dirsfirst noreport prune"),
    "uniq": _Options("cdiuzD", "fsw", "count repeated unique ignore-case", operands=1),
}
