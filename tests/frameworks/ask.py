"""Hold one adapter to the laws, in the environment of its framework: ``python -m tests.frameworks.ask PLACE EXAMPLES``.

The last line of its output is the report as JSON.
"""

from __future__ import annotations

import json
import logging
import sys

from toolrt.conformance import conformance, load_adapter

if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    print("\n" + json.dumps(conformance(load_adapter(sys.argv[1]), int(sys.argv[2])).to_json()))
