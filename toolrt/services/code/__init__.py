"""Code intelligence: what a workspace's code defines, calls and imports, and search over it.

The ``code`` extra brings the parsers.
"""

from toolrt.services.code._code import CodeIndex, Embed
from toolrt.services.code._graph import Edge, Graph, Place
from toolrt.services.code._index import Building
from toolrt.services.code._languages import LANGUAGES, Language, language_of
from toolrt.services.code._search import Hit, Reference, References
from toolrt.services.code._skeleton import skeleton

__all__ = [
    "LANGUAGES",
    "Building",
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
