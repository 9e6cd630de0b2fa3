"""Plans an undo: all steps that take a batch's changes back, before any of them runs.

Rules.  Every file must be as the batch left it, and between two changes of the batch as the first of them left it.
Otherwise the plan is refused, and the refusal names the files.  The plan is also refused where a file that was written
in place has lost a name since.  A directory need not be as the batch left it: the undo removes it if it is empty then.

A change that later ones took back exactly, as the undo of one call does, is not taken back again.

Theory.  The plan takes the rows back in reverse.  At each step a name has what an earlier step put there; or else what
is on the disk now, under the name that it has before the plan moves it back.  A file with several names now is one
file, and the plan writes it by one of them.  A file that had several names while the batch changed it is known by its
number then: a change by one name is taken back for all its names, also those that the batch removed, and those that are
left where it removed the one that it had changed the file by.

Limits.  A name that was removed from a file with several comes back as a file of its own, with the content it had.
"""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

import attrs

from toolrt.workspace._problem import FileProblem, from_os_error
from toolrt.workspace.change._mutation import InspectedEntry, standing_at
from toolrt.workspace.change._version import ChangeRow, EntryState, Number
from toolrt.workspace.disk._disk import Disk, Entry, Kind, Stat
from toolrt.workspace.names._identity import Wanted, identify
from toolrt.workspace.names._mounts import path_on
from toolrt.workspace.names._naming import shown_at

#: How many files a refusal names.
_MOST_NAMED = 10

#: Says whether the file of that look is written in place though it has several names.
StaysOne = Callable[[Stat], Awaitable[bool]]

#: The names, each as its key and as it is spelled, that a file of this number has still.
NamesLeft = Mapping[Number, Sequence[tuple[Entry, Entry]]]


def names_left(disk: Disk, rows: Sequence[ChangeRow]) -> NamesLeft:
    """The names of each file that `rows` wrote in place and then removed a name of.

    Checkpoint: never; it blocks.
    """
    written = {
        row.before.number: row.before.links
        for row in rows
        if row.before is not None and row.after is not None and row.before.number == row.after.number is not None
    }
    removed = {row.before.number for row in rows if row.before is not None and row.after is None and row.target is None}
    found: dict[Number, list[tuple[Entry, Entry]]] = {}
    for number, links in written.items():
        if number is not None and number in removed:
            device, inode = number
            for entry in disk.names_of(Stat(Kind.FILE, 0, 0, 0, 0, inode, device, links)):
                identity = identify(disk, f"./{shown_at(entry)}", None, Wanted.ENTRY)
                if identity.key is not None:
                    found.setdefault(number, []).append((identity.key, identity.entry))
    return found


async def planned(disk: Disk, rows: Sequence[ChangeRow], stays_one: StaysOne, left: NamesLeft) -> list[ChangeRow]:
    """The rows that take back `rows`, in order; each file is written once.

    Args:
        stays_one: where it says no, what is written to a file with several names is a file of its own.
        left: as `names_left` gives it.

    Raises:
        FileProblem: a file is not as `rows` left it, or the disk cannot be looked at.

    Checkpoint: always.
    """
    plan = _UndoPlan(disk, stays_one, left)
    for row in reversed(rows):
        await plan.add(row.inverse())
    if plan.blamed:
        named = sorted(plan.blamed)
        shown = ", ".join(named[:_MOST_NAMED]) + (", ..." if len(named) > _MOST_NAMED else "")
        raise FileProblem(
            shown,
            "what the batch left there",
            "something else: another writer changed it since",
            "Nothing was changed; undo what came later first, or edit the files.",
        )
    return _directories_last([row for row in plan.rows if row is not None])


def not_taken_back(rows: Sequence[ChangeRow], rows_of: Callable[[Entry], Sequence[ChangeRow]]) -> list[ChangeRow]:
    """Those of one batch's `rows` that no later change of another batch has taken back exactly.

    Args:
        rows_of: all rows of an entry, by its key; in order.
    """
    batch_id = rows[0].batch_id
    gone = {row for key in {key for row in rows for key, _ in row.ends} for row in _taken_back(rows_of(key), batch_id)}
    return [row for row in rows if row not in gone]


def _taken_back(rows: Sequence[ChangeRow], batch_id: str) -> Iterator[ChangeRow]:
    """Those of one entry's `rows` that the batch made and that later ones took back, and did not make again."""
    standing: list[ChangeRow] = []
    undone: list[tuple[ChangeRow, list[ChangeRow]]] = []
    for row in rows:
        sizes = range(1, len(standing) + 1) if row.batch_id != batch_id else ()
        size = next((size for size in sizes if _takes_back(row, standing[-size:])), 0)
        again = next((pair for pair in reversed(undone) if _takes_back(row, pair[:1])), None)
        if size:
            undone.append((row, standing[-size:]))
            del standing[-size:]
        elif again is not None:
            undone.remove(again)
            standing += again[1]
        else:
            standing.append(row)
    for _, some in undone:
        yield from (row for row in some if row.batch_id == batch_id)


def _takes_back(row: ChangeRow, some: Sequence[ChangeRow]) -> bool:
    """Whether `row` takes back these rows of the same entry, of which each goes on from the one before."""
    if row.target_key is not None:
        return len(some) == 1 and (row.key, row.target_key) == (some[0].target_key, some[0].key)
    moved = any(one.target_key is not None for one in some)
    return not moved and (row.before, row.after) == (some[-1].after, some[0].before)


def _directories_last(rows: Sequence[ChangeRow]) -> list[ChangeRow]:
    """The same with each directory removed as late as it may be, the deepest first.

    Which call's row it is that made a directory depends on timing; what was put into it may be of an earlier call.
    """
    ordered: list[ChangeRow] = []
    late: list[ChangeRow] = []
    for row in rows:
        if row.target is None and _is_directory(row.before) and row.after is None:
            late.append(row)
            continue
        gone = [one.key for one in late if _needs_gone(row, one.key)]
        ordered += _deepest_first(one for one in late if any(_below(one.key, key) for key in gone))
        late = [one for one in late if not any(_below(one.key, key) for key in gone)]
        ordered.append(row)
    return ordered + _deepest_first(late)


def _needs_gone(row: ChangeRow, directory: Entry) -> bool:
    """Whether `row` puts something where `directory` was, or below; or takes it along."""
    if row.target_key is not None:
        return _below(directory, row.target_key) or _below(directory, row.key)
    return row.after is not None and _below(row.key, directory)


def _deepest_first(rows: Iterable[ChangeRow]) -> list[ChangeRow]:
    return sorted(rows, key=lambda row: (-len(row.key), row.key))


@attrs.define(eq=False)
class _PlannedFile:
    """A file, or a link, at one point of the plan."""

    #: What it is then.
    standing: EntryState
    #: The names it has then, as far as the batch touched them, and how each is spelled.
    names: dict[Entry, Entry]
    #: Its number on the disk; None: the plan makes it.
    number: Number | None = None
    #: Whether it has several names on the disk, and whether it is written in place then.
    shared: bool = False
    in_place: bool = False
    #: How many names it has then, those that the batch did not touch among them.
    links: int = 1
    #: The step that last wrote it; None: none since the last move.
    place: int | None = None
    #: Those that were one file then, itself among them.
    same: list[_PlannedFile] = attrs.Factory(lambda self: [self], takes_self=True)

    def leave(self) -> None:
        """It is one with no other."""
        self.same.remove(self)
        self.same = [self]


class _UndoPlan:
    def __init__(self, disk: Disk, stays_one: StaysOne, left: NamesLeft) -> None:
        self._disk = disk
        self._stays_one = stays_one
        self._left = left
        #: What is to be done; None where a later step has made an earlier one needless.
        self.rows: list[ChangeRow | None] = []
        #: The files that are not as the batch left them.
        self.blamed: dict[str, None] = {}
        #: What stands where, as far as the plan has looked or put something there.
        self._at: dict[Entry, _PlannedFile | EntryState | None] = {}
        #: The files with several names on the disk, by number.
        self._on_disk: dict[Number, _PlannedFile] = {}
        #: The files that had one number at this point of the plan.
        self._numbered: dict[Number, list[_PlannedFile]] = {}
        #: The step that removed a file with one name; forgotten at a move.
        self._removed: dict[Entry, int] = {}
        #: The moves planned so far: from, to, and how `from` is spelled.
        self._moves: list[tuple[Entry, Entry, Entry]] = []

    async def add(self, row: ChangeRow) -> None:
        """Plan one more step."""
        if row.target is not None and row.target_key is not None:
            await self._add_move(row, row.target_key, row.target)
        elif _is_directory(row.before) or _is_directory(row.after):
            self._removed.pop(row.key, None)
            self._at[row.key] = row.after
            self.rows.append(row)
        else:
            await self._add_change(row)

    async def _add_change(self, row: ChangeRow) -> None:
        file = await self._look(row.key, row.entry)
        now = file.standing if isinstance(file, _PlannedFile) else file
        if now != row.before or (row.before is not None and row.before.digest is None):
            self.blamed[row.path] = None
        elif not isinstance(file, _PlannedFile):
            if row.after is not None:
                self._make(row, row.after)
        elif row.after is None:
            self._remove(row, file)
        else:
            number = row.after.number
            if number is not None and row.before is not None and row.before.number == number:
                self._join(file, number)
                for key, entry in self._left.get(number, ()):
                    await self._look(key, entry)
                lost = row.before is not None and sum(one.links for one in file.same) < row.before.links
                if lost or any(one.shared and not one.in_place for one in file.same):
                    # A name that the batch changed with this one is another program's by now, or is outside.
                    self.blamed[row.path] = None
                for one in file.same:
                    self._write(row, one, row.after)
            else:
                file.leave()
                self._write(row, file, row.after)
                self._join(file, row.after.number)

    def _make(self, row: ChangeRow, after: EntryState) -> None:
        """Something is there where nothing was."""
        file = _PlannedFile(after, {row.key: row.entry}, place=len(self.rows))
        place = self._removed.pop(row.key, None)
        earlier = None if place is None else self.rows[place]
        was = None if earlier is None or earlier.before is None else earlier.before.kind
        if place is not None and was is Kind.FILE is after.kind:
            file.place = place
            self._revise(file, after)
        else:
            self.rows.append(attrs.evolve(row, after=attrs.evolve(after, number=None)))
        self._at[row.key] = file
        self._join(file, after.number)

    def _remove(self, row: ChangeRow, file: _PlannedFile) -> None:
        """One name goes: what was to be written to the file for its sake alone is not written to the others'."""
        self._at[row.key] = None
        del file.names[row.key]
        file.links -= 1
        earlier = None if file.place is None else self.rows[file.place]
        if file.place is not None and earlier is not None and earlier.key == row.key:
            place = file.place
            if earlier.before is None:
                self.rows[place] = None
            else:
                self.rows[place] = attrs.evolve(earlier, after=None)
                file.standing = earlier.before
        else:
            place = len(self.rows)
            self.rows.append(attrs.evolve(row, before=_as_found(row.before, file)))
        if not file.shared and self.rows[place] is not None:
            self._removed[row.key] = place
        file.place = None
        if not file.names:
            file.leave()

    def _write(self, row: ChangeRow, file: _PlannedFile, after: EntryState) -> None:
        """A file has another content, by whichever of its names."""
        if file.place is None:
            key = row.key if row.key in file.names else next(iter(file.names))
            before = _as_found(row.before, file)
            file.place = len(self.rows)
            self.rows.append(attrs.evolve(row, key=key, entry=file.names[key], before=before))
        self._revise(file, after)

    def _revise(self, file: _PlannedFile, after: EntryState) -> None:
        """The step that writes the file leaves that instead, or is needless."""
        assert file.place is not None
        earlier = self.rows[file.place]
        assert earlier is not None
        file.standing = after
        if earlier.before == after and after.mode in (None, earlier.before.mode):
            self.rows[file.place] = None
            file.place = None
        else:
            after = attrs.evolve(after, number=file.number if file.in_place else None, links=file.links)
            self.rows[file.place] = attrs.evolve(earlier, after=after)

    def _join(self, file: _PlannedFile, number: Number | None) -> None:
        """The file has that number at this point, and is one with those that have it and are as it is."""
        if number is None:
            return
        others = self._numbered.get(number)
        if others is file.same:
            return
        file.leave()
        if others and others[0].standing == file.standing:
            file.same = others
            others.append(file)
        else:
            self._numbered[number] = file.same

    async def _add_move(self, row: ChangeRow, target_key: Entry, target: Entry) -> None:
        if row.gives_back:
            await self._require_as_kept(row)
        if await self._look(row.key, row.entry) is None or (
            target_key != row.key and await self._look(target_key, target) is not None
        ):
            self.blamed[row.path] = None
            return
        depth = len(row.key)
        if target_key != row.key:
            for key in [key for key in self._at if _below(key, target_key)]:
                del self._at[key]
        for key in [key for key in self._at if _below(key, row.key)]:
            there = (*target_key, *key[depth:])
            what = self._at[there] = self._at.pop(key)
            if isinstance(what, _PlannedFile):
                what.names[there] = (*target, *what.names.pop(key)[depth:])
        for what in self._at.values():
            if isinstance(what, _PlannedFile):
                what.place = None
        self._removed.clear()
        self._moves.append((row.key, target_key, row.entry))
        self.rows.append(row)

    async def _require_as_kept(self, row: ChangeRow) -> None:
        """Refuse to put back what is not, by number and digest, what was kept aside."""
        listed = row.before
        try:
            found = await self._disk.survey(row.entry)
            device = self._disk.lstat(path_on(self._disk, row.entry[:-2])).device
        except OSError:
            found = None
        if (
            found is None
            or listed is None
            or listed.number is None
            or (found.kind, found.digest) != (listed.kind, listed.digest)
            # A file system that was mounted again may have another device number.
            or found.number not in (listed.number, (device, listed.number[1]))
        ):
            raise FileProblem(
                row.path,
                "what was removed, kept aside as it was",
                "something else" if found is not None else "none any more",
                "Nothing was changed. Limits(kept_bytes=, kept_seconds=) say how much is kept, and how long.",
            )

    async def _look(self, key: Entry, entry: Entry) -> _PlannedFile | EntryState | None:
        """What will stand there after the steps planned so far."""
        if key in self._at:
            return self._at[key]
        here, spelled = key, entry
        for source, target, before in reversed(self._moves):
            if _below(here, target):
                here, spelled = (*source, *here[len(target) :]), (*before, *spelled[len(target) :])
            elif _below(here, source):
                return None
        try:
            found = await standing_at(self._disk, spelled)
        except OSError as error:
            shown = shown_at(spelled)
            if error.errno != errno.ELOOP:
                raise from_os_error(shown, error) from None
            if any(key[:depth] in self._at for depth in range(1, len(key))):
                return None  # the plan itself puts a directory in the link's place
            raise elsewhere(shown) from None
        standing = found.standing
        if standing is None or standing.kind not in (Kind.FILE, Kind.SYMLINK):
            return standing
        file = self._at[key] = await self._file(found, standing)
        file.names[key] = entry
        return file

    async def _file(self, found: InspectedEntry, standing: EntryState) -> _PlannedFile:
        """What was found on the disk, which may be known by another name."""
        number = standing.number
        shared = number is not None and found.stat is not None and found.stat.links > 1
        if number is not None and number in self._on_disk:
            return self._on_disk[number]
        in_place = shared and found.stat is not None and await self._stays_one(found.stat)
        file = _PlannedFile(standing, {}, number, shared, in_place, found.stat.links if found.stat is not None else 1)
        if number is not None and shared:
            self._on_disk[number] = file
        self._join(file, number)
        return file


def elsewhere(path: str) -> FileProblem:
    """The refusal of an undo that finds another directory on its way."""
    return FileProblem(path, "the directory it was in", "another one", "Nothing was changed; put it back first.")


def _as_found(before: EntryState | None, file: _PlannedFile) -> EntryState | None:
    """What a step finds there, with what is known of it now."""
    if before is None:
        return None
    mode = file.standing.mode if before.mode is None else before.mode
    return attrs.evolve(before, mode=mode, number=file.number, links=file.links)


def _is_directory(standing: EntryState | None) -> bool:
    return standing is not None and standing.kind is Kind.DIRECTORY


def _below(key: Entry, directory: Entry) -> bool:
    """Whether `key` is that of `directory`, or of something below it."""
    return key[: len(directory)] == directory
