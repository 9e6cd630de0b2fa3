"""The environment of a command: stated name by name, so that no secret is inherited.

Rules.  A command gets the names in `INHERITED` that this process has, what `FIXED` sets, and what its caller gives;
nothing else.  A directory that is given relative to nothing is no place to look for programs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

#: What a command may know of the environment of this process.
INHERITED = (
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TEMP",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
)

#: The environment of every command: no terminal, no prompts, and no locks taken by commands that only read.
FIXED: Mapping[str, str] = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "TERM": "dumb",
}

#: Where no PATH is known.
_PATH = "/usr/local/bin:/usr/bin:/bin"


def environment_of(given: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command, in the order of its names."""
    found = {name: os.environ[name] for name in INHERITED if name in os.environ}
    path = [place for place in found.get("PATH", "").split(os.pathsep) if os.path.isabs(place)]
    found["PATH"] = os.pathsep.join(path) or _PATH
    return dict(sorted({**found, **FIXED, **given}.items()))


#: What keeps git, where it only looks, from running programs that a repository's own configuration names.
_GIT = {
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.sshCommand": "false",
    "gpg.program": "false",
    "gpg.ssh.program": "false",
    "gpg.x509.program": "false",
    "log.showSignature": "false",
}


def outside(environment: Mapping[str, str], root: str) -> dict[str, str]:
    """The same for a command that only reads: no program inside `root` is found by its name, and git runs none."""
    inside = os.path.realpath(root)
    path = []
    for place in environment["PATH"].split(os.pathsep):
        real = os.path.realpath(place)
        if os.path.isabs(place) and real != inside and not real.startswith(inside.rstrip("/") + "/"):
            path.append(place)
    git = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_CONFIG_COUNT": str(len(_GIT))}
    for number, (key, value) in enumerate(_GIT.items()):
        git[f"GIT_CONFIG_KEY_{number}"], git[f"GIT_CONFIG_VALUE_{number}"] = key, value
    return {**environment, **git, "PATH": os.pathsep.join(path) or _PATH}
