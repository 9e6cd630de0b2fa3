"""``python -m toolrt`` is the command ``toolrt``."""

import sys

from toolrt.cli import main

if __name__ == "__main__":
    sys.exit(main())
