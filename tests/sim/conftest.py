"""The folder of these tests is a place to import from."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
