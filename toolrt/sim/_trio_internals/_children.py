"""Where Trio has what starts child processes and talks to them."""

from __future__ import annotations

import sys
from typing import Any

#: The module of it all, and the one of streams over pipes; None: this system has no such streams.
children: Any = sys.modules["trio._subprocess"]
pipes: Any = sys.modules.get("trio._unix_pipes")
