"""How many examples a property gets: HYPOTHESIS_PROFILE=full for the full counts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

# The folder of these tests is a place to import from.
sys.path.insert(0, str(Path(__file__).parent))

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much]}

settings.register_profile("ci", max_examples=40, derandomize=True, **_COMMON)
settings.register_profile("full", max_examples=1_000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
