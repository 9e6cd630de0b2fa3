"""Reports the begin and the end of a mutation, for each file that it changes."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from toolrt.events import MutationBegan, MutationEnded, observer
from toolrt.workspace.change._revision import CallContext


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
        if observer.records:
            for name in self._names:
                observer.tell(MutationBegan(self._ctx.batch_id, self._ctx.call_index, name))
        return self._told

    def __exit__(self, *_: object) -> None:
        if observer.records:
            for name, one in zip(self._names, self._told, strict=True):
                version = None if one.digest is None else one.digest.hex()[:12]
                observer.tell(MutationEnded(self._ctx.batch_id, self._ctx.call_index, name, version, one.landed))
