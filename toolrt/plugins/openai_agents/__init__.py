"""OpenAI Agents SDK: the function tools of an agent, run in call order where they touch the same thing.

Needs the extra ``openai_agents``.
"""

from toolrt.plugins.openai_agents._tools import ordered

__all__ = ["ordered"]
