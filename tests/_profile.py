"""How often tests repeat what they try: `tests/README.md` says what each profile runs."""

from __future__ import annotations

import os

#: Whether the full repeat counts are asked for: HYPOTHESIS_PROFILE is "nightly", or "full".
FULL = os.environ.get("HYPOTHESIS_PROFILE") in ("full", "nightly")
