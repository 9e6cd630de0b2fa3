"""The events of a mutation: that it begins, and how it ended, for each file that it changes."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from toolrt.events import MutationBegan, MutationEnded, observer
from toolrt.workspace.change._revision import CallContext

__all__ = ["MutationEvents", "MutationResult", "tell_began", "tell_ended"]


@attrs.define
class MutationResult:
    """What is known of a file while it is being changed, for the event that ends it."""

    #: The digest of the content that is there; None: there is none, or it is not known.
    digest: bytes | None = None
    #: Whether the change landed.
    landed: bool = False


class MutationEvents:
    """Reports that mutations of these files begin, and how they ended."""

    __slots__ = ("_ctx", "_names", "_told")

    def __init__(self, ctx: CallContext, names: Sequence[str]) -> None:
        self._ctx = ctx
        self._names = names
        self._told = [MutationResult() for _ in names]

    def __enter__(self) -> list[MutationResult]:
        tell_began(self._ctx, self._names)
        return self._told

    def __exit__(self, *_: object) -> None:
        tell_ended(self._ctx, self._names, self._told)


def tell_began(ctx: CallContext, names: Sequence[str]) -> None:
    """Report that mutations of the files of these `names` begin."""
    if observer.records:
        for name in names:
            observer.tell(MutationBegan(ctx.batch_id, ctx.call_index, name))


def tell_ended(ctx: CallContext, names: Sequence[str], told: Sequence[MutationResult]) -> None:
    """Report how they ended."""
    if observer.records:
        for name, one in zip(names, told, strict=True):
            version = None if one.digest is None else one.digest.hex()[:12]
            observer.tell(MutationEnded(ctx.batch_id, ctx.call_index, name, version, one.landed))
