"""What a policy keeps beside the scheduler's list of the tasks that can run, so that it need not look through it.

Rules.  The scheduler keeps the names of the tasks that can run, by path, and a log of where one was put in or taken
out.  `PriorityRow` has a priority for each name, in step with that log.  `RunningSums` has weights, and draws by their
sums.  Where few tasks can run the policy is handed a tuple of them: looking through it is then faster.

Theory.  Few names come and go in a step.  So a step costs the same beside ten tasks and, nearly, beside a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

#: Where a name was put in, with the name; or taken out, with None.
Change = tuple[int, str | None]

# A block has at most so many numbers.
_LONGEST = 32


def choice_of(at: int, place: int) -> int:
    """Give the choice that a place in the list is, where choice 0 is the task to go on at `place`, or -1: none is."""
    if at > place:
        return at
    return at + 1 if at < place else 0


class PriorityRow:
    """A priority for each task that can run, in the order of the scheduler's list; one of -1 is still to be drawn.

    Args:
        known: the priorities of tasks that have one; those that cannot run now keep theirs until they can.
        names: the scheduler's list.
        changes: its log, which may have entries that `names` holds already.
    """

    __slots__ = ("_followed", "apart", "is_drawn", "names", "values")

    def __init__(self, known: dict[str, float], names: Sequence[str], changes: Sequence[Change]) -> None:
        self.names = list(names)
        self.apart = dict(known)
        self.values = [self.apart.pop(name, -1.0) for name in names]
        #: False while a priority may be missing.
        self.is_drawn = False
        self._followed = len(changes)

    def follow(self, changes: Sequence[Change]) -> bool:
        """Take over what came and went since; say whether anything did."""
        followed, self._followed = self._followed, len(changes)
        if followed == self._followed:
            return False
        names, values, apart = self.names, self.values, self.apart
        for at, name in changes[followed:]:
            if name is None:
                value = values.pop(at)
                gone = names.pop(at)
                if value >= 0:
                    apart[gone] = value
            else:
                names.insert(at, name)
                values.insert(at, apart.pop(name, -1.0))
                self.is_drawn = False
        return True

    def draw_missing(self, place: int, draw: Callable[[], float]) -> None:
        """Draw where a priority is missing: for the task to go on, at `place`, first, then for the others by path."""
        values = self.values
        if place >= 0 and values[place] < 0:
            values[place] = draw()
        for at, value in enumerate(values):
            if value < 0:
                values[at] = draw()
        self.is_drawn = True

    def draw_again(self, raced: Collection[str], place: int, draw: Callable[[], float]) -> None:
        """Draw anew for those of `raced` that can run, in the same order; the others do when they can."""
        if self.apart:
            for name in raced:
                self.apart.pop(name, None)
        values, names = self.values, self.names
        if place >= 0 and names[place] in raced:
            values[place] = draw()
        for at, name in enumerate(names):
            if name in raced and at != place:
                values[at] = draw()

    def forget(self, raced: Collection[str] | None) -> None:
        """Let those of `raced`, or all, be without a priority."""
        for name in (*self.names, *self.apart) if raced is None else raced:
            if self.apart.pop(name, None) is None and name in self.names:
                self.values[self.names.index(name)] = -1.0
        self.is_drawn = False

    def draw_all(self, place: int, draw: Callable[[], float]) -> None:
        """Draw anew for all that can run, in the same order; the others do when they can."""
        self.apart.clear()
        first = [draw()] if place >= 0 else []
        self.values = [draw() for _ in range(len(self.names) - len(first))]
        self.values[place:place] = first

    def best(self, place: int) -> int:
        """Give the place of the highest priority; of two alike that of the task to go on, else the first."""
        values = self.values
        highest = max(values)
        return place if place >= 0 and values[place] == highest else values.index(highest)

    def known(self) -> dict[str, float]:
        """Give the priorities of all tasks that have one."""
        return self.apart | {name: value for name, value in zip(self.names, self.values, strict=True) if value >= 0}


class RunningSums:
    """Numbers in a row, in blocks that know their sums: a change or a search goes through one block, and the sums."""

    __slots__ = ("_blocks", "_sums", "total")

    def __init__(self, numbers: Sequence[int]) -> None:
        half = _LONGEST // 2
        blocks = [list(numbers[at : at + half]) for at in range(0, len(numbers), half)]
        self._blocks = blocks or [[]]
        self._sums = [sum(block) for block in self._blocks]
        #: The sum of all.
        self.total = sum(self._sums)

    def _find(self, place: int) -> tuple[int, int]:
        """Give the block that a place is in, and where in it; the end of the row is in the last one."""
        number, last = 0, len(self._blocks) - 1
        while number < last and place >= (length := len(self._blocks[number])):
            place -= length
            number += 1
        return number, place

    def add(self, place: int, more: int) -> None:
        """Make the number at a place larger by `more`."""
        number, at = (0, place) if len(self._blocks) == 1 else self._find(place)
        self._blocks[number][at] += more
        self._sums[number] += more
        self.total += more

    def insert(self, place: int, number: int) -> None:
        """Put a number in at a place."""
        which, at = self._find(place)
        block = self._blocks[which]
        block.insert(at, number)
        self._sums[which] += number
        self.total += number
        if len(block) > _LONGEST:
            half = len(block) // 2
            self._blocks[which : which + 1] = [block[:half], block[half:]]
            self._sums[which : which + 1] = [sum(block[:half]), sum(block[half:])]

    def remove(self, place: int) -> None:
        """Take the number at a place out."""
        which, at = self._find(place)
        number = self._blocks[which].pop(at)
        self._sums[which] -= number
        self.total -= number

    def drawn(self, share: float, first: int) -> int:
        """Give the place at which the running sum goes above `share` of the total; at 0 <= share < 1 there is one.

        Args:
            share: of the total.
            first: the place of a number that counts before all others; -1: none does.
        """
        above, own = share * self.total, 0
        blocks, sums = self._blocks, self._sums
        its_block = its_place = -1
        if first >= 0:
            its_block, its_place = (0, first) if len(blocks) == 1 else self._find(first)
            own = blocks[its_block][its_place]
            above -= own
            if above < 0:
                return first
        before, last, place = 0, len(blocks) - 1, -1
        # Whole numbers are taken from `above`, which a float does exactly as long as it stays above 0.
        for which, block in enumerate(blocks):
            if which < last and above >= (whole := sums[which] - (own if which == its_block else 0)):
                above -= whole
                before += len(block)
                continue
            for at, number in enumerate(block):
                if at != its_place or which != its_block:
                    place = before + at
                    above -= number
                    if above < 0:
                        return place
        return place
