"""The path that `toolrt.teaching.litmus` and `toolrt.teaching.play` had before; their names stay importable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolrt._alias import forward_to

if TYPE_CHECKING:
    from toolrt.teaching.litmus import *  # noqa: F403
    from toolrt.teaching.play import *  # noqa: F403
else:
    __getattr__ = forward_to(__name__, "toolrt.teaching.litmus", "toolrt.teaching.play")
