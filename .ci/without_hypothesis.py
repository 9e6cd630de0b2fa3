"""A pytest plugin: hypothesis cannot be imported, as if it were not installed.

``PYTHONPATH=.ci python -m pytest -p without_hypothesis -p no:hypothesispytest tests/sim``

pytest-trio imports hypothesis when it can, and hypothesis changes what Trio draws its random numbers from; the
simulator and the runtime must not notice either way.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder


class _Refuse(MetaPathFinder):
    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname.partition(".")[0] == "hypothesis":
            raise ImportError("hypothesis is hidden from this run")


if "hypothesis" in sys.modules:
    raise RuntimeError("hypothesis was imported before it could be hidden")
sys.meta_path.insert(0, _Refuse())
