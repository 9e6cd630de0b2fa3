"""Removes from texts what must not leave the machine.

Rules.
    1. A path inside the workspace becomes relative to its root, one below a mount behind the mount's name; any other
       absolute path, any that begins with ``~`` and any that climbs out by ``..`` becomes "the path".
    2. A secret becomes ``[secret]``: what the caller says is one, the values of environment variables whose names say
       so (``..._KEY``, ``..._TOKEN``, ``PASSWORD``, ...), what has the form of a well-known one (keys of cloud and
       model providers, tokens of code hosts, JSON web tokens, private keys, passwords in addresses), and what follows
       a name such as ``password=``.  So does the text of a field with such a name.

Limits.  A secret that looks like any other word and is not in `secrets` is not found.  So events should
have no content in the first place; this is the second line of defence, not the first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolrt.workspace import without_private_paths

#: Stands where a secret stood.
SECRET = "[secret]"

#: Texts that were looked through are remembered, so many of them.
_REMEMBERED = 2048

#: Stands for the root where there is none: nothing is inside it.
_NOWHERE = "/\0"

#: A value of the environment that is shorter is no secret: it would be found in everything.
_SHORTEST = 6

_SECRET_NAME = re.compile(
    r"(?i)(?:^|[_\-.])(?:pass(?:word|wd|phrase)?|pwd|secrets?|token|api[_\-]?key|(?:access|private|secret|signing)"
    r"[_\-]?key|key|credentials?|auth|authorization|cookies?|dsn|session[_\-]?id)(?:$|[_\-.])"
)

#: Where the process is; a name that looks like that of a password.
_NO_SECRETS = ("PWD", "OLDPWD")

_FORMS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:.*?-----END [A-Z ]*PRIVATE KEY-----|.*)"
    r"|\bsk-[A-Za-z0-9_\-]{8,}"
    r"|\b(?:gh[opsur]_|github_pat_|glpat-|xox[abeprs]-|npm_|pypi-|hf_)[A-Za-z0-9_\-]{8,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{12,}"
    r"|\bAIza[0-9A-Za-z_\-]{20,}"
    r"|\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{4,}(?:\.[A-Za-z0-9_\-]*)?"
    r"|(?<=://)[^\s/@:]*:[^\s/@]+(?=@)"
    r"|(?i:(?<=bearer )|(?<=basic ))[A-Za-z0-9+/=_\-.]{8,}",
    re.DOTALL,
)

_NAMED = re.compile(
    r"(?i)((?:[\w\-.]*[_\-.])?(?:password|passwd|passphrase|pwd|secret|token|api[_\-]?key|access[_\-]?key|"
    r"private[_\-]?key|authorization|credentials?)[\"']?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s,;&]+)"
)

#: A text of these characters alone has no path in it; and so short, no secret but a known one.
_WORD = re.compile(r"[a-z][a-z_.#]{0,40}(?:-\d{1,6})?")


class Scrubber:
    """Looks texts through.

    Args:
        root: the workspace's absolute path, or None.
        secrets: texts that must not be told.
        mounts: the absolute paths of its mounts, by name.
    """

    def __init__(self, root: str | None, secrets: Iterable[str], mounts: Mapping[str, str] | None = None) -> None:
        self._root = root or _NOWHERE
        self._mounts = dict(mounts or {})
        # A root's other spelling, through symlinks, is as good as its own.
        spelled = [(os.path.realpath(place), place) for place in (root, *self._mounts.values()) if place]
        self._spelled = [
            (re.compile(rf"{re.escape(real)}(?![\w.\-])"), place) for real, place in spelled if real != place
        ]
        of_environment = [
            value
            for name, value in os.environ.items()
            if len(value) >= _SHORTEST and name not in _NO_SECRETS and _SECRET_NAME.search(name)
        ]
        known = sorted({*secrets, *of_environment}, key=lambda text: (-len(text), text))
        self._known = re.compile("|".join(map(re.escape, known))) if known else None
        self._seen: dict[str, str] = {}

    def fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The same fields, their texts looked through."""
        seen = self._seen
        shown: dict[str, Any] = {}
        for name, value in fields.items():
            kind = type(value)
            if kind is str:
                found = seen.get(value)
                shown[name] = self.text(value) if found is None else found
            elif kind is int or value is None or kind is bool or kind is float:
                shown[name] = value
            elif kind is dict:
                shown[name] = {self.text(key): self._own(key, one) for key, one in value.items()}
            else:
                shown[name] = self._value(value)
        return shown

    def _own(self, name: str, value: Any) -> Any:
        """A value that stands under a name of a tool's own."""
        if isinstance(value, str) and name.lower() != "key" and _SECRET_NAME.search(name):
            return SECRET
        return self._value(value)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self._own(str(key), one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(one) for one in value]
        return value

    def text(self, text: str) -> str:
        """The text without what is private."""
        found = self._seen.get(text)
        if found is None:
            found = self._looked_through(text)
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            self._seen[text] = found
        return found

    def _looked_through(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(SECRET, text)
        if _WORD.fullmatch(text):
            return text
        text = _FORMS.sub(SECRET, text)
        text = _NAMED.sub(lambda found: found[1] + SECRET, text)
        for real, place in self._spelled:
            text = real.sub(lambda _, place=place: place, text)  # type: ignore[misc]
        return without_private_paths(self._root, text, mounts=self._mounts)
