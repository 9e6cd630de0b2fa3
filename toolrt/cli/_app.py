"""The commands, and what becomes of their errors.

Rules.  A command gives its exit code.  A user's mistake gives one line on standard error, exit code 2 and no
traceback; a bug of toolrt's own keeps its traceback, and has a code that no verdict has.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cyclopts import App, CoercionError, CycloptsError, UnknownCommandError

from toolrt.cli._arguments import STANDARD_INPUT
from toolrt.cli._exit import MEANINGS, Exit
from toolrt.cli._made_with import version
from toolrt.cli.screen._screen import complain, flush_output, forgiving, why_text_was_lost
from toolrt.cli.screen._signals import code_of_interrupt, taken_as_interrupts
from toolrt.errors import InternalError, MisuseError, ReplayDiverged, ToolrtError

#: A command's module and the first paragraph of its help.  The module is imported only when the command is called.
_COMMANDS = {
    "run": ("_run", "Execute the tool calls of a recorded model response on a directory."),
    "history": (
        "_history",
        "List the versions of a file that toolrt run made: when, in which batch and call, and what was done.",
    ),
    "undo": (
        "_history",
        "Put back exactly what a batch changed, one call of it or one file, all of it or nothing.",
    ),
    "restore": (
        "_history",
        "Put back one version of a file. That makes a new version, so nothing is lost.",
    ),
    "purge": (
        "_purge",
        "Remove what a journal keeps of batches that are over, and what a directory's history keeps of its files.",
    ),
    "explore": (
        "_explore",
        "Run a recorded response under many schedules on a copy in memory, and check every law.",
    ),
    "replay": (
        "_replay",
        "Repeat one execution exactly, and print what happens in it and which laws it breaks.",
    ),
    "timeline": ("_draw", "Draw what happened in one execution."),
    "litmus": ("_litmus", "List small concurrent programs, show one, or verify them."),
    "playground": ("_playground", "Write a page on which Trio programs are edited and explored in a browser."),
    "laws": ("_laws", "Print which law catches which broken variant of the runtime."),
    "serve": ("_serve", "Offer the tools of a directory to an MCP host, over standard input and output or by HTTP."),
    "conformance": ("_conformance", "Hold any executor of tool calls against the laws, from outside."),
    "doctor": ("_doctor", "Tell what is installed, what each extra gives, and what the simulator controls here."),
    "completion": ("_completion", "Print the script that completes toolrt's commands and options in a shell."),
}

_ABOUT = """\
Run a model's tool calls on Trio, and show that timing never decides how they end. In asyncio code begin with
toolrt.aio.run, in an MCP host with toolrt serve."""


def _app(called: str | None) -> App:
    app = App(
        name="toolrt",
        help=_help(_ABOUT),
        help_format="plaintext",
        version=version("toolrt"),
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    for name, (module, summary) in _COMMANDS.items():
        if name == called:
            command = getattr(importlib.import_module(f"toolrt.cli.commands.{module}"), name)
            app.command(command, help=_help(command.__doc__ or ""))
        else:
            app.command(f"toolrt.cli.commands.{module}:{name}", name=name, help=summary)
    return app


def whole_app() -> App:
    """All commands with their options: each module is imported."""
    app = _app(None)
    for name in _COMMANDS:
        app[name]  # cyclopts imports the command when it is asked for it
    return app


def _help(text: str) -> str:
    """A docstring as help that the terminal wraps, with the exit codes below it."""
    paragraphs = (" ".join(paragraph.split()) for paragraph in f"{text}\n\n{MEANINGS}".split("\n\n"))
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def dispatch(arguments: Sequence[str] | None = None) -> int:
    """Do what `arguments` ask for, and give the exit code."""
    with _open_streams(), taken_as_interrupts():
        why_text_was_lost()
        code = _dispatched(sys.argv[1:] if arguments is None else arguments)
        flush_output()
        if code == Exit.INTERRUPTED:
            return code_of_interrupt()
        if (why := why_text_was_lost()) is None or code == Exit.BUG:
            return code
        complain(f"the output could not be written ({why}). Calls that were run stay run.")
        return Exit.USAGE


def _said_of(error: CycloptsError) -> str:
    """What is wrong with the arguments; cyclopts leaves out commands after the eighth, and a positional's name."""
    said = str(error).replace(STANDARD_INPUT, "-").rstrip().rstrip(".")
    if isinstance(error, UnknownCommandError):
        unknown = said.partition(" Available commands")[0].rstrip(".")
        return f"{unknown}. There are {', '.join(_COMMANDS)}"
    if isinstance(error, CoercionError) and error.argument is not None and error.argument.name not in said:
        return f"Invalid value for {error.argument.name}: {said}"
    return said


@contextmanager
def _open_streams() -> Iterator[None]:
    """Standard output and error that can be written to: they are None when the shell has closed them."""
    closed = [name for name in ("stdout", "stderr") if getattr(sys, name) is None]
    with open(os.devnull, "w") as nowhere:
        for name in closed:
            setattr(sys, name, nowhere)
        forgiving(sys.stdout)
        forgiving(sys.stderr)
        try:
            yield
        finally:
            for name in closed:
                setattr(sys, name, None)


def _dispatched(given: Sequence[str]) -> int:
    try:
        code = _app(given[0] if given else None)(
            [STANDARD_INPUT if argument == "-" else argument for argument in given]
        )
    except CycloptsError as error:
        command = f" {given[0]}" if given and given[0] in _COMMANDS else ""
        complain(f"{_said_of(error)}. See toolrt{command} --help.")
        return Exit.USAGE
    except InternalError:
        traceback.print_exc()
        return Exit.BUG
    except ReplayDiverged as error:
        complain(str(error))
        return Exit.INCONCLUSIVE
    except (MisuseError, ToolrtError) as error:
        complain(str(error))
        return Exit.USAGE
    except OSError as error:
        complain(f"{error.filename or 'the system'}: {os.strerror(error.errno or 0)}")
        return Exit.USAGE
    except KeyboardInterrupt:
        complain("interrupted")
        return Exit.INTERRUPTED
    except Exception:
        traceback.print_exc()
        return Exit.BUG
    return int(code) if isinstance(code, int) else Exit.OK
