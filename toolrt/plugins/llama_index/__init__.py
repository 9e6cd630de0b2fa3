"""LlamaIndex: agents whose tool calls run in call order where they touch the same thing, with results in call order.

Needs the extra ``llama_index``.
"""

from toolrt.plugins.llama_index._agent import ordered

__all__ = ["ordered"]
