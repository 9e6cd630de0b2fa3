"""A pytest plugin: hypothesis cannot be imported, as if it were not installed.

``PYTHONPATH=.ci python -m pytest -p without_hypothesis -p no:hypothesispytest tests/sim``

pytest-trio imports hypothesis when it can, and hypothesis changes what Trio draws its random numbers from; the
simulator and the runtime must not notice either way.  Test modules that import it themselves are left out.
"""

from __future__ import annotations

import re
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path

_IMPORTS_IT = re.compile(
    r"^(from|import) (hypothesis|toolrt\.testing)\b|^from toolrt import .*\btesting\b", re.MULTILINE
)


class _Refuse(MetaPathFinder):
    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname.partition(".")[0] == "hypothesis":
            raise ImportError("hypothesis is hidden from this run")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what could not be imported."""
    if collection_path.suffix == ".py" and _IMPORTS_IT.search(collection_path.read_text(encoding="utf-8")):
        print(f"left out, because it needs hypothesis: {collection_path.name}")
        return True
    return None


if "hypothesis" in sys.modules:
    raise RuntimeError("hypothesis was imported before it could be hidden")
sys.meta_path.insert(0, _Refuse())
