"""Bad usage and bad input: a clear line, exit code 2, no traceback, and nothing changed."""

import builtins
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolrt.cli import main
from toolrt.cli.experiment import _input

COMMANDS = ("run", "explore")


@pytest.fixture
def refused(toolrt: Any, shop: Path, tree: Callable[[Path], dict[str, str]]) -> Callable[..., str]:
    """Calls a command that must refuse, and gives what it says."""

    def call(*arguments: object) -> str:
        before = tree(shop.parent)
        ended = toolrt(*arguments)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith("toolrt: ")
        assert "Traceback" not in ended.err
        assert tree(shop.parent) == before
        said: str = ended.err
        return said

    return call


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("not JSON", "cannot be read as JSON"),
        ("", "is empty"),
        ("7", "the response"),
        ('{"calls": 3}', "the response"),
        ('{"id": "msg", "role": "assistant", "content": [{"type": "text", "text": "hi"}]}', "no tool"),
        ("[]", "no"),
        ("[NaN]", "NaN"),
    ],
)
def test_response_of_another_kind_is_refused(
    refused: Callable[..., str], shop: Path, tmp_path: Path, command: str, text: str, why: str
) -> None:
    """Not JSON, JSON of another shape, a response without tool calls; the file is named."""
    path = tmp_path / "response.json"
    path.write_text(text)
    said = refused(command, path, "--workspace", shop)
    assert str(path) in said.replace("\n", "")
    assert why in said or why == "the response"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("named", "workspace", "why"),
    [
        ("{shop}/absent.json", "{shop}", "No such file"),
        ("{shop}", "{shop}", "got a directory"),
        ("a\0b", "{shop}", "cannot be read"),
        ("{response}", "{shop}/absent", "expected a directory, got none"),
        ("{response}", "{shop}/README.md", "got a file"),
        ("{response}", "{shop}/circle", "expected a directory"),
    ],
)
def test_name_of_something_else_is_refused(
    refused: Callable[..., str], response: Path, shop: Path, command: str, named: str, workspace: str, why: str
) -> None:
    """The refusal says what stands there: no file, a directory, a file, a circle of links."""
    (shop / "circle").symlink_to("circle")
    given = named.format(shop=shop, response=response)
    assert why in refused(command, given, "--workspace", workspace.format(shop=shop))


@pytest.mark.parametrize("command", COMMANDS)
def test_response_that_may_not_be_read_is_refused(
    refused: Callable[..., str], response: Path, shop: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an unprivileged user meets it."""

    def forbidden(path: Any, *mode: Any) -> Any:
        if str(path) == str(response):
            raise PermissionError(13, "Permission denied", path)
        return builtins.open(path, *mode)

    monkeypatch.setattr(_input, "open", forbidden, raising=False)
    assert "Permission denied" in refused(command, response, "--workspace", shop)


@pytest.mark.parametrize("command", COMMANDS)
def test_response_over_the_limit_is_refused_unread(
    refused: Callable[..., str], shop: Path, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size is looked at first; the file is sparse, and reading it would fail the test."""
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(_input.MAX_RESPONSE_BYTES + 1)
    monkeypatch.setattr(_input, "_read", lambda *arguments: pytest.fail("it was read"))
    assert main([command, str(path), "--workspace", str(shop)]) == 2


@pytest.mark.seldom
@pytest.mark.process
def test_response_over_the_limit_on_standard_input_is_refused(toolrt: Any, shop: Path) -> None:
    """A pipe has no size; one byte more than the limit is read, and no more."""
    ended = toolrt.spawned("run", "-", "--workspace", shop, given=b" " * (_input.MAX_RESPONSE_BYTES + 1))
    assert (ended.code, ended.out) == (2, "")
    assert "larger than the limit" in ended.err


@pytest.mark.parametrize("command", COMMANDS)
def test_workspace_that_may_not_be_listed_is_refused(
    refused: Callable[..., str], response: Path, shop: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an unprivileged user meets it."""

    def forbidden(path: Any) -> Any:
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", forbidden)
        code = main([command, str(response), "--workspace", str(shop)])
    assert code == 2


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_unreadable_things_are_refused_for_an_unprivileged_user(tmp_path: Path, response: Path) -> None:
    """A real process of user nobody, which can neither read the response nor enter the workspace."""
    (tmp_path / "closed").mkdir(mode=0o700)
    secret = tmp_path / "secret.json"
    secret.write_text("[]")
    secret.chmod(0o600)
    # What is imported late may be where only root can read, when Python is.
    program = (
        "import os, sys; from importlib import metadata; metadata.metadata('toolrt'); "
        "from toolrt.cli import main, _app; from toolrt.cli.commands import _explore; "
        "os.setgid(65534); os.setuid(65534); sys.exit(main(sys.argv[1:]))"
    )
    for path, workspace in ((secret, tmp_path), (response, tmp_path / "closed")):
        ended = subprocess.run(
            [sys.executable, "-c", program, "explore", str(path), "--workspace", str(workspace)],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert ended.returncode == 2
        assert "Permission denied" in ended.stderr
        assert "Traceback" not in ended.stderr


#: Options that mean nothing, or nothing together, as on a command line.
BAD_OPTIONS = {
    "run": """
        --lanes by_luck
        --limit 0
        --limit -3
        --limit many
        --limit 1.5
        --no-such-option
        --format xml
        --timeout 0
        --timeout -1
        --timeout nan
        --trace .
        --trace absent/trace.json
        --trace ''
        --dry-run --format anthropic
        'one argument too many'
    """,
    "explore": """
        --executions 0
        --executions some
        --executions 2.5
        --seed x
        --seconds 0
        --seconds nan
        --limit 0
        --lanes by_luck
        --save .
        --save absent/failure.json
        --strategy luck
        --strategy dpor --seed 1
        --preemptions 1
        --strategy bounded --preemptions -1
        --timeout 0
        --timeout nan
        --clock real --timeout 1
        --clock explored
        --clock-moves 1
        --clock explored --timeout 1 --clock-moves 0
        --cancel-at 7
        --faults ENOENT
        --faults-at-most 1
        --faults EIO --faults-at-most 0
        --step-limit 0
    """,
}


@pytest.mark.parametrize(
    ("command", "options"),
    [(command, line.strip()) for command, text in BAD_OPTIONS.items() for line in text.strip().splitlines()],
)
def test_bad_options_are_refused(
    refused: Callable[..., str], response: Path, shop: Path, command: str, options: str
) -> None:
    """Before anything is run."""
    refused(command, response, "--workspace", shop, *shlex.split(options))


def test_explore_refuses_to_save_into_the_workspace(refused: Callable[..., str], response: Path, shop: Path) -> None:
    """Nothing is ever written there, not even when asked."""
    assert "never writes to" in refused("explore", response, "--workspace", shop, "--save", shop / "failure.json")


def test_run_refuses_a_trace_that_cannot_be_written(
    refused: Callable[..., str], response: Path, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checked before the first call, as an unprivileged user meets it."""
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).startswith(str(tmp_path)) or mode == os.X_OK)
    said = refused("run", response, "--workspace", shop, "--trace", tmp_path / "trace.json")
    assert "cannot be written" in said


@pytest.mark.parametrize("arguments", [("run",), ("explore",), ("replay",), ("rum",), ("laws", "--executions", "0")])
def test_missing_or_wrong_arguments_are_refused(refused: Callable[..., str], arguments: tuple[str, ...]) -> None:
    """The help is named."""
    assert "--help" in refused(*arguments)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ("not JSON", "cannot be read as JSON"),
        ("[]", '"toolrt_replay": 1'),
        ('{"toolrt_replay": 2}', '"toolrt_replay": 1'),
        ('{"toolrt_replay": 1}', "options: expected an object"),
        ('{"toolrt_replay": 1, "options": {"lanes": "none"}}', "options.lanes: expected one of"),
        ('{"toolrt_replay": 1, "options": {"lanes": "serial", "limit": 0}}', "options.limit"),
        ('{"toolrt_replay": 1, "options": {"lanes": "serial", "limit": 1}, "schedule": 5}', "schedule"),
    ],
)
def test_replay_refuses_other_files(refused: Callable[..., str], tmp_path: Path, document: str, why: str) -> None:
    """The place is named."""
    path = tmp_path / "failure.json"
    path.write_text(document)
    assert why in refused("replay", path)


def test_unknown_command_is_told_which_there_are(refused: Callable[..., str]) -> None:
    """All of them."""
    said = refused("rum")
    names = "run, history, undo, restore, purge, explore, replay, timeline, litmus, playground, laws, serve"
    assert f"{names}, conformance, doctor, completion." in said


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("run", "{response}", "--workspace", ""), "workspace '': expected a directory, got an empty name"),
        (("run", "{response}", "--workspace", "{shop}", "--timeout", "inf"), "--timeout: expected seconds above 0"),
        (("explore", "{response}", "--workspace", "{shop}", "--timeout", "inf"), "--timeout: expected seconds above"),
        (("restore", "a.txt", "x", "--workspace", "{shop}"), "VERSION: expected a whole number, got 'x'"),
        (("laws", "--calls", "2"), "--calls: it is for --strategy dpor"),
        (("laws", "--seed", "2", "--strategy", "dpor"), "--seed: it is for --strategy random"),
        (("laws", "--executions", "2", "--strategy", "dpor"), "--executions: it is for --strategy random"),
        (("laws", "--jobs", "2"), "--strategy dpor"),
        (("laws", "--checkpoint", "laws.json"), "--strategy dpor"),
        (("explore", "{response}", "--workspace", "{shop}", "--jobs", "0"), "--jobs"),
        (("run", "{response}", "--workspace", "{shop}", "--shell", "--context-budget", "-1"), "tokens, 0 or more"),
        (("history", "../other", "--workspace", "{shop}"), "outside"),
        (("litmus", "dining"), "dining_2"),
        (("litmus", "nothing like it"), "nothing like it"),
        (("litmus", "--most", "0"), "--most"),
        (("litmus", "--reproduce", "none.py"), "--reproduce"),
        (("litmus", "--play"), "--play"),
        (("litmus", "lock_2", "--verify", "--play"), "--play"),
        (("litmus", "lock_2", "--json", "--play"), "--play"),
    ],
)
def test_refusal_names_what_was_refused(
    refused: Callable[..., str], response: Path, shop: Path, arguments: tuple[str, ...], why: str
) -> None:
    """An empty name (an unset variable) is no directory; an option that would say nothing is not passed over."""
    assert why in refused(*(argument.format(response=response, shop=shop) for argument in arguments))


def test_replay_refuses_a_response(refused: Callable[..., str], response: Path) -> None:
    """A likely mistake."""
    assert "toolrt_replay" in refused("replay", response)


def test_error_shows_hostile_names_harmlessly(toolrt: Any, shop: Path) -> None:
    """A file's name cannot colour the terminal."""
    ended = toolrt("run", "\x1b[31mred[bold]", "--workspace", shop)
    assert "\x1b" not in ended.err
    assert "\\x1b[31mred[bold]" in ended.err


@pytest.mark.process
def test_command_without_its_extra_names_it(shop: Path) -> None:
    """Exit 2, no traceback, and what to install."""
    program = "import sys; sys.modules['cyclopts'] = None; from toolrt.cli import main; sys.exit(main(['laws']))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert 'pip install "toolrt[cli]"' in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help"), ("explore", "--help"), ("replay", "--help")])
def test_help_documents_the_exit_codes(toolrt: Any, arguments: tuple[str, ...]) -> None:
    """Every code has its meaning there."""
    ended = toolrt(*arguments)
    words = " ".join(ended.out.split())
    assert ended.code == 0
    assert "0 every call is OK, or all laws hold" in words
    assert "2 bad usage or input" in words
    assert "130 Ctrl-C" in words


def test_bug_of_ours_has_a_code_of_its_own(
    toolrt: Any, response: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 70 with a traceback: neither a verdict nor bad input."""

    def broken(*arguments: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("toolrt.cli.commands._run.plan_of", broken)
    ended = toolrt("run", response, "--workspace", shop, "--dry-run")
    assert ended.code == 70
    assert "RuntimeError: broken" in ended.err


def test_version_is_printed(toolrt: Any) -> None:
    """It is the package's."""
    assert json.dumps(toolrt("--version").out.strip()) != '""'
