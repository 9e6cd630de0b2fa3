"""``toolrt completion``: the script with which a shell completes the commands and their options."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from cyclopts import Parameter

from toolrt.cli._exit import Exit


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell.")], /) -> int:
    """Print the script that completes toolrt's commands and options in a shell.

    For bash: toolrt completion bash > ~/.local/share/bash-completion/completions/toolrt. For zsh: write it to a file
    _toolrt in a directory of $fpath. For fish: ~/.config/fish/completions/toolrt.fish. Nothing is installed by this
    command.
    """
    # The commands are made there, and this module is one of theirs.
    from toolrt.cli._app import whole_app

    sys.stdout.write(whole_app().generate_completion(prog_name="toolrt", shell=shell))
    return Exit.OK
