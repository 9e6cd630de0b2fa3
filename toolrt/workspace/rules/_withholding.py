"""Finds the entries below a call's directories that its approval withholds.

Rules.  A walk leaves withheld entries out.  A change of a whole directory refuses where one is in it, or would come to
stand at a withheld name; it looks just before it changes anything.

Limits.  What another program puts into the directory between that look and the change is not seen.
"""

from __future__ import annotations

from toolrt.model import Withheld
from toolrt.workspace._problem import FileProblem, from_os_error
from toolrt.workspace.change._revision import CallContext
from toolrt.workspace.disk._disk import Disk, Entry, Kind, Stat, is_own
from toolrt.workspace.names._identity import Identity, KeysBelow
from toolrt.workspace.names._naming import shown_at


class Withholding:
    """Which entries below a directory a call may not touch.  Get it from `withholding`.

    Args:
        disk: where the files are.
        withheld: what the call's approval withholds.
        base: the directory.
    """

    def __init__(self, disk: Disk, withheld: Withheld, base: Identity) -> None:
        self._withheld = withheld
        self._keys = KeysBelow(disk, base)

    def why(self, entry: Entry, stat: Stat) -> str | None:
        """Why the call may not touch what stands at `entry`, below the directory; None: it may.

        Args:
            entry: the names that lead to it from the root, as the disk spells them.
            stat: what a look at it showed.

        Checkpoint: never.
        """
        return self.why_at(self._keys.key(entry), stat)

    def why_at(self, key: Entry, stat: Stat) -> str | None:
        """As `why`, for such a thing at the name of that `key`, whether it stands there or would come to.

        Args:
            key: the names that lead to it from the root, as their directories fold them.
            stat: what a look at it showed.

        Checkpoint: never.
        """
        return self._withheld(("file", *key), stat.links if stat.kind is Kind.FILE else 1)


def withholding(disk: Disk, ctx: CallContext, base: Identity) -> Withholding | None:
    """What the approval of a call withholds below a directory; None: nothing.

    A tool that heeds it is made with ``leaves_out=True``; see `Allow.withheld`.

    Args:
        disk: where the files are.
        ctx: the call's context.
        base: the directory.

    Checkpoint: never.
    """
    withheld: Withheld | None = getattr(ctx, "withheld", None)
    return None if withheld is None else Withholding(disk, withheld, base)


def withheld_note(count: int) -> str:
    """What an answer says of entries that it leaves out.

    Args:
        count: how many there are, 1 or more.

    Checkpoint: never.
    """
    return f"{count} {'entry is' if count == 1 else 'entries are'} left out: a rule keeps this tool from them"


async def refuse_withheld(disk: Disk, ctx: CallContext, identity: Identity, target: Identity | None = None) -> None:
    """Nothing in the directory of that `identity` is withheld from the call, nor would be below `target`.

    Raises:
        FileProblem: something is, or the directory cannot be looked through; names it.

    Checkpoint: if anything is withheld from the call.
    """
    rules = withholding(disk, ctx, identity)
    if rules is None or identity.found is None or identity.found.kind is not Kind.DIRECTORY:
        return
    pending = [identity.entry]
    while pending:
        entry = pending.pop()
        try:
            listed = await disk.names(entry)
        except OSError as error:
            raise from_os_error(shown_at(entry), error) from None
        for name, stat in listed:
            below = (*entry, name)
            if is_own(name):
                continue
            why = rules.why(below, stat)
            if why is None and target is not None:
                why = rules.why_at((*(target.key or ()), *below[len(identity.entry) :]), stat)
            if why is not None:
                raise FileProblem(
                    identity.path,
                    "a directory that a rule lets go as a whole",
                    f"one with {shown_at(below)} in it ({why})",
                    "Nothing was changed; name the entries that you mean one by one.",
                )
            if stat.kind is Kind.DIRECTORY:
                pending.append(below)
