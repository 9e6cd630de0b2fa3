"""Files that the commands write and that hold contents of files are for their user alone."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.parametrize("there", [False, True])
def test_trace_is_readable_by_its_user_alone(tmp_path: Path, there: bool) -> None:
    """A new file, and one that was there and was readable by all."""
    workspace, trace, calls = tmp_path / "files", tmp_path / "trace.json", tmp_path / "calls.json"
    workspace.mkdir()
    (workspace / "secret.txt").write_text("secret", encoding="utf-8")
    calls.write_text(json.dumps([{"id": "a", "name": "read_file", "input": {"path": "secret.txt"}}]), encoding="utf-8")
    if there:
        trace.write_text("", encoding="utf-8")
        trace.chmod(0o644)
    command = [sys.executable, "-m", "toolrt", "run", str(calls), "--workspace", str(workspace), "--trace", str(trace)]
    subprocess.run(command, check=True, capture_output=True)
    assert "secret" in trace.read_text(encoding="utf-8")
    assert stat.S_IMODE(trace.stat().st_mode) == 0o600
