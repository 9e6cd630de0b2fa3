"""What docs/explanation/network.md tells in figures: how many of Trio's own tests of sockets pass over the network.

    python .ci/measure_network.py            run them, and print the sentence
    python .ci/measure_network.py --write    write it into the page, and the counts beside it
    python .ci/measure_network.py --explore=100    so many executions of each

Needs pyOpenSSL and trustme, which those tests import. tests/docs/test_network_figures.py holds the page and the counts
against each other.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import trio

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "explanation" / "network.md"
COUNTS = ROOT / "docs" / "explanation" / "network.json"
_BEGIN, _END = "<!-- figures: .ci/measure_network.py -->\n", "<!-- end of figures -->\n"

#: Trio's tests of what stands on sockets; those that need a thread, or a socket made outside, are refused and counted.
SUITES = (
    "trio._tests.test_socket",
    "trio._tests.test_highlevel_socket",
    "trio._tests.test_highlevel_open_tcp_stream",
    "trio._tests.test_highlevel_open_tcp_listeners",
    "trio._tests.test_highlevel_open_unix_stream",
    "trio._tests.test_highlevel_serve_listeners",
    "trio._tests.test_highlevel_ssl_helpers",
    "trio._tests.test_ssl",
    "trio._tests.test_dtls",
    "trio._core._tests.test_io",
)


def run(options: list[str]) -> dict[str, Any]:
    """Run the suites, and give what the table of explored schedules says."""
    plain = ["-q", "-c", "/dev/null", "-p", "no:cacheprovider", "-p", "trio._tests.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", *plain, *options, "--pyargs", *SUITES]
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return {"trio": trio.__version__, "files": len(SUITES), **read(done.stdout)}


def read(output: str) -> dict[str, Any]:
    """Read that table."""
    table = output[output.index("explored schedules") :]
    names = ("async tests", "explored", "failed", "undecided", "refused", "skipped")
    counts: dict[str, Any] = {name: int(re.findall(rf"^{name} +(\d+)", table, re.M)[0]) for name in names}
    causes = table.partition("refused, by cause:\n")[2]
    rows = re.match(r"(?: +\d+  .*\n)*", causes)
    assert rows is not None
    counts["causes"] = {cause: int(count) for count, cause in re.findall(r"^ +(\d+)  (.*)$", rows[0], re.M)}
    return counts


def sentence(counts: dict[str, Any]) -> str:
    """Write the counts as the page has them."""
    causes = ", ".join(f"{cause}: {count}" for cause, count in counts["causes"].items())
    return (
        f"Of the {counts['async tests']} async tests in {counts['files']} files of Trio {counts['trio']} (sockets, "
        f"streams, listeners, TLS, DTLS, waiting for input\nand output) {counts['explored']} pass over it in each "
        f"schedule tried, {counts['failed']} fail, {counts['undecided']} are undecided, "
        f"{counts['refused']} are\nrefused{f' ({causes})' if causes else ''}, "
        f"and {counts['skipped']} skip themselves.\n"
    )


def figures_on(page: str) -> str:
    """Give what stands on the page."""
    return page.partition(_BEGIN)[2].partition(_END)[0]


def main(arguments: list[str]) -> None:
    options = [argument for argument in arguments if argument != "--write"] or ["--explore=10"]
    counts = run(options)
    print(sentence(counts), end="")
    if "--write" in arguments:
        page = PAGE.read_text(encoding="utf-8")
        before, _, rest = page.partition(_BEGIN)
        PAGE.write_text(before + _BEGIN + sentence(counts) + _END + rest.partition(_END)[2], encoding="utf-8")
        COUNTS.write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
