"""How many examples a property gets: HYPOTHESIS_PROFILE is "dev", "ci" (the default) or "nightly" (also: "full").

"dev" draws anew each time and is quick, "ci" draws the same each time, "nightly" draws a thousand.  None of them has a
deadline: they start from the profile of `tests/conftest.py`.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_COMMON = {"suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much]}

settings.register_profile("dev", max_examples=10, **_COMMON)
settings.register_profile("ci", max_examples=40, derandomize=True, **_COMMON)
settings.register_profile("full", max_examples=1_000, **_COMMON)  # tests/conftest.py: what "nightly" is set to
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
