"""Reads ``.gitignore`` files, and says which files they leave out.

Rules (gitignore(5)).  Each directory may have a ``.gitignore``, which speaks of what is below it; of all patterns
that match a path the last one decides, and a deeper file comes after those above it.  A pattern with a slash before
its end is anchored in its file's directory, any other matches a name at any depth below.  One with a slash at its end
matches directories alone.  ``!`` takes back.  Nothing below a directory that is left out can be taken back, so a walk
does not enter one.  ``.git`` itself is always left out.

Theory.  Written here rather than taken from `pathspec`, whose presence would decide answers: a workspace must find
the same files with the core alone.  Held against git itself by a property test (tests/workspace/test_ignore.py).

Limits.  Only the files of the workspace count: no ``.git/info/exclude``, no user's own list, nothing above the root.
A ``.gitignore`` that is a symbolic link counts for nothing, as for git.  Names are compared as text, where git
compares bytes: so ``?`` is one letter.
"""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Iterable, Iterator, Sequence, Set

import attrs

from toolrt.workspace.rules._patterns import Glob, name_matcher

IGNORE_FILE = ".gitignore"

#: A pattern whose first wildcard is two or more stars that end a name they do not begin; ``**`` alone may follow often.
_STARS_IN_NAME = re.compile(r"([^*?\[\\]*[^*?\[\\/])\*{2,}(?:(\\?/)(?:\*{2,}/)*(.+)|)", re.DOTALL)

#: The same with an empty name behind the stars, which git lets them stand for; and what follows that.
_EMPTY_NAME = re.compile(r"([^*?\[\\]*[^*?\[\\/])\*{2,}/(?:/(.+))?", re.DOTALL)

#: A last name that stands for any number of directories.
_STARS_AT_END = re.compile(r"(?:\A|/)\*{2,}\Z")

#: How many names of that kind are taken as git does, one after the other; no real pattern has two.
_REWRITTEN_MOST = 20

#: A pattern, or the beginning of one, that is no more than what it says; one that is a star and then that.
_PLAIN = re.compile(r"[^*?\[\\]+")
_SUFFIX = re.compile(r"\*([^*?\[\\/]+)")

#: What stands for other characters, in a last name without sets.
_WILDCARDS = re.compile(r"[*?]")

#: How many suffixes are tried one by one on each name.
_SUFFIXES_ONE_BY_ONE = 64

#: How many patterns of one file may have to be held against every path; the later ones count for nothing.
RULES_MOST = 2000

#: How many contents are kept as rules.
_KEPT = 64

#: The names that no walk enters.
_ALWAYS = frozenset({".git"})


@attrs.frozen
class _Rule:
    """One line."""

    #: Whether it takes back what others left out.
    negated: bool
    #: Whether it is about directories alone.
    directories: bool
    #: For a pattern that matches a name at any depth.
    name: re.Pattern[str] | None
    #: For one that is anchored: one of them has to match.
    paths: tuple[Glob, ...] = ()

    def matches(self, names: tuple[str, ...], is_directory: bool) -> bool:
        """Whether it is about the path of `names` from its file's directory."""
        if self.directories and not is_directory:
            return False
        if self.name is not None:
            return self.name.match(names[-1]) is not None
        return any(path.matches(names) for path in self.paths)


@attrs.frozen
class _Screen:
    """Passes the names that a pattern may match, by the last name of each pattern alone."""

    #: Last names without wildcards.
    _plain: frozenset[str]
    #: What the last names that begin, or end, without a wildcard begin or end with.
    _prefixes: tuple[str, ...]
    _suffixes: tuple[str, ...]
    #: The suffixes by their lengths where they are many, and then none above.
    _by_length: dict[int, set[str]]
    #: All other last names.
    _others: re.Pattern[str] | None
    #: Patterns that end in any number of directories.
    _open: tuple[Glob, ...]

    @classmethod
    def of(cls, lines: Iterable[str], names: Iterable[str], suffixes: Iterable[str]) -> _Screen:
        """The screen for the patterns of these lines, and for those that are a name, or a star and a suffix."""
        plain, ends = set(names), set(suffixes)
        prefixes: set[str] = set()
        others: list[str] = []
        open_: list[Glob] = []
        for line in lines:
            pattern = _without_spaces_at_end(line).removeprefix("!").removesuffix("/")
            last = pattern.rpartition("/")[2]
            if "/" in pattern and (not last or "**" in last or "[" in pattern or "\\" in pattern):
                rule = _rule(line)
                open_ += () if rule is None else rule.paths
            elif "[" in last or "\\" in last:
                others.append(name_matcher(last, as_git=True).pattern)
            elif _PLAIN.fullmatch(last):
                plain.add(last)
            elif suffix := _WILDCARDS.split(last)[-1]:
                ends.add(suffix)
            elif prefix := _WILDCARDS.split(last)[0]:
                prefixes.add(prefix)
            else:
                others.append(name_matcher(last, as_git=True).pattern)
        by_length: dict[int, set[str]] = {}
        if len(ends) > _SUFFIXES_ONE_BY_ONE:
            for suffix in ends:
                by_length.setdefault(len(suffix), set()).add(suffix)
            ends = set()
        union = re.compile("|".join(dict.fromkeys(others)), re.DOTALL) if others else None
        return cls(frozenset(plain), tuple(prefixes), tuple(ends), by_length, union, tuple(open_))

    def passed(self, above: tuple[str, ...], names: Sequence[str]) -> Iterable[str]:
        """Those of the `names` in one directory that a pattern may match; a name that is not among them, none does.

        Args:
            above: the names that lead from the patterns' directory to theirs.
        """
        if self._open and any(glob.may_match_in(above) for glob in self._open):
            return names
        found = self._plain.intersection(names)
        others: list[str] = []
        if self._suffixes:
            others += [name for name in names if name.endswith(self._suffixes)]
        for length, suffixes in self._by_length.items():
            others += [name for name in names if name[-length:] in suffixes]
        if self._prefixes:
            others += [name for name in names if name.startswith(self._prefixes)]
        if self._others is not None:
            others += filter(self._others.match, names)
        return found.union(others) if others else found


@attrs.frozen
class IgnoreFile:
    """The patterns of one ``.gitignore``.

    A path is held only against the patterns that may be about it: those that name it, name its end, name the
    directory it begins with, or have wildcards elsewhere.
    """

    #: The number of the last line that may decide, by the name, by its end, and by the first name of the path.
    _by_name: dict[str, int] = attrs.field(eq=False)
    _by_suffix: dict[str, int] = attrs.field(eq=False)
    _by_first: dict[str, int] = attrs.field(eq=False)
    #: By the number of a line that of the one before it that may decide as well.  Lists in place of these would be
    #: work for Python's garbage collector as long as the file is remembered.
    _before: dict[int, int] = attrs.field(eq=False)
    #: The numbers of all others.
    _rest: list[int] = attrs.field(eq=False)
    #: Two files of the same lines are equal.
    _lines: list[str]
    #: How long the suffixes are.
    _lengths: list[int] = attrs.field(eq=False)
    #: How many patterns count for nothing, because there are more than `RULES_MOST`.
    unread: int = attrs.field(eq=False)
    #: Says for which names a pattern may stand.
    screen: _Screen = attrs.field(eq=False)
    #: The rules that were needed so far, by number.
    _made: dict[int, _Rule | None] = attrs.field(factory=dict, init=False, eq=False)

    @classmethod
    @functools.lru_cache(_KEPT)
    def of(cls, content: bytes) -> IgnoreFile:
        """The patterns in `content`; a line that is none counts for nothing, as for git."""
        text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
        by_name: dict[str, int] = {}
        by_suffix: dict[str, int] = {}
        by_first: dict[str, int] = {}
        before: dict[int, int] = {}
        anchored: list[str] = []
        rest: list[int] = []

        def add(numbers: dict[str, int], key: str) -> None:
            if key in numbers:
                before[number] = numbers[key]
            numbers[key] = number

        lines = [line.removesuffix("\r") for line in text.split("\n")]
        # Of equal lines the last one decides.
        last = {line: number for number, line in enumerate(lines)}
        for line, number in last.items():
            if not line or line.startswith("#"):
                continue
            pattern = _without_spaces_at_end(line)
            pattern = pattern.removeprefix("!").removesuffix("/")
            if "/" not in pattern:
                if _PLAIN.fullmatch(pattern):
                    add(by_name, pattern)
                elif suffix := _SUFFIX.fullmatch(pattern):
                    add(by_suffix, suffix[1])
                else:
                    rest.append(number)
                continue
            first = pattern.removeprefix("/").partition("/")[0]
            if _PLAIN.fullmatch(first):
                add(by_first, first)
                anchored.append(line)
            else:
                rest.append(number)
        kept = sorted(rest)[:RULES_MOST]
        return cls(
            by_name,
            by_suffix,
            by_first,
            before,
            kept,
            lines,
            sorted({len(suffix) for suffix in by_suffix}),
            len(rest) - len(kept),
            _Screen.of([*anchored, *(lines[number] for number in kept)], by_name, by_suffix),
        )

    def verdict(self, names: tuple[str, ...], is_directory: bool) -> bool | None:
        """Whether the path of `names` from this file's directory is left out; None: this file does not say."""
        name = names[-1]
        about = [*self._rest]
        ends = [self._by_suffix.get(name[-length:]) for length in self._lengths]
        for number in (self._by_name.get(name), self._by_first.get(names[0]), *ends):
            while number is not None:
                about.append(number)
                number = self._before.get(number)
        about.sort(reverse=True)
        for number in about:
            rule = self._rule(number)
            if rule is not None and rule.matches(names, is_directory):
                return not rule.negated
        return None

    def _rule(self, number: int) -> _Rule | None:
        if number not in self._made:
            self._made[number] = _rule(self._lines[number])
        return self._made[number]


def _rule(line: str) -> _Rule | None:
    if line.startswith("#"):
        return None
    line = _without_spaces_at_end(line)
    negated = line.startswith("!")
    line = line[negated:]
    directories = line.endswith("/")
    if directories:
        line = line[:-1]
    if not line:
        return None
    if "/" not in line:
        return _Rule(negated, directories, name_matcher(line, as_git=True))
    line = line.removeprefix("/")
    if empty := _EMPTY_NAME.fullmatch(line):
        begin, rest = empty.groups()
        line = begin if rest is None else f"{begin}/{rest}"
    if not line or "//" in line or line.endswith("/") or line.startswith("/"):
        return None  # git matches nothing with an empty name
    if empty:
        return _Rule(negated, directories, None, (_glob(line),))
    return _Rule(negated, directories, None, tuple(_globs(line)))


def _globs(pattern: str) -> Iterator[Glob]:
    """What an anchored pattern means.

    git takes away the beginning that has no wildcard before it looks at the rest, whose first stars then stand at its
    beginning: so ``foo**/bar`` is about ``foobar``, and about ``bar`` anywhere below what begins with ``foo``.
    """
    for _ in range(_REWRITTEN_MOST):
        found = _STARS_IN_NAME.fullmatch(pattern)
        if found is None:
            break
        begin, slash, rest = found.groups()
        if not slash:
            yield Glob.of(f"{begin}*/**", as_git=True)
            return
        yield _glob(f"{begin}*/**/{rest}")
        if slash != "/":
            return
        pattern = begin + rest
    yield _glob(pattern)


def _glob(pattern: str) -> Glob:
    if _STARS_AT_END.search(pattern):
        pattern += "/*"  # all that is inside, and not the directory itself
    return Glob.of(pattern, as_git=True)


def _without_spaces_at_end(line: str) -> str:
    end = len(line)
    while end and line[end - 1] == " ":
        end -= 1
    backslashes = end - len(line[:end].rstrip("\\"))
    # An odd one takes the space behind it for itself.
    return line[: end + 1] if backslashes % 2 and end < len(line) else line[:end]


@attrs.frozen
class Ignored:
    """What is left out below one directory: its own ``.gitignore`` and those of the directories above it."""

    #: Each file with how many of the names lead to its directory, the nearest first.
    _files: tuple[tuple[int, IgnoreFile], ...] = ()
    #: The names that lead here from the topmost of them.
    _names: tuple[str, ...] = ()

    def enter(self, name: str) -> Ignored:
        """The same for the directory `name` of this one, before its own file is known."""
        return Ignored(self._files, (*self._names, name))

    def including(self, file: IgnoreFile) -> Ignored:
        """The same with this directory's own file."""
        return Ignored(((len(self._names), file), *self._files), self._names)

    @property
    def unread(self) -> int:
        """How many patterns of its files count for nothing."""
        return sum(file.unread for _, file in self._files)

    def may_leave_out(self, names: Sequence[str]) -> Set[str]:
        """Those of the `names` in this directory that `leaves_out` has to be asked about; it leaves out no other."""
        found = set(_ALWAYS)
        for depth, file in self._files:
            found.update(file.screen.passed(self._names[depth:], names))
        return found

    def leaves_out(self, name: str, is_directory: bool) -> bool:
        """Whether `name` in this directory is left out."""
        if name in _ALWAYS:
            return True
        names = (*self._names, name)
        for depth, file in self._files:
            verdict = file.verdict(names[depth:], is_directory)
            if verdict is not None:
                return verdict
        return False
