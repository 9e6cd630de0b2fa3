"""Code intelligence: what a workspace's code defines, calls and imports, and search over it.

The ``code`` extra brings the parsers.
"""

from toolrt.plugins.code._code import CodeIndex, Embed
from toolrt.plugins.code._graph import CodeEdge, Graph, Place
from toolrt.plugins.code._index import Building
from toolrt.plugins.code._languages import LANGUAGES, Language, language_of
from toolrt.plugins.code._search import Hit, Reference, References
from toolrt.plugins.code._skeleton import skeleton

__all__ = [
    "LANGUAGES",
    "Building",
    "CodeEdge",
    "CodeIndex",
    "Edge",
    "Embed",
    "Graph",
    "Hit",
    "Language",
    "Place",
    "Reference",
    "References",
    "language_of",
    "skeleton",
]

#: The former name of `CodeEdge`.
Edge = CodeEdge
