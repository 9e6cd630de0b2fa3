"""The path that `toolrt.plugins.lsp` had before; its names stay importable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolrt._alias import forward_to

if TYPE_CHECKING:
    from toolrt.plugins.lsp import *  # noqa: F403
else:
    __getattr__ = forward_to(__name__, "toolrt.plugins.lsp")
