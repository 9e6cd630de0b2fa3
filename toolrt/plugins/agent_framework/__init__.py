"""Microsoft's Agent Framework: function calls of an agent, run in call order where they touch the same thing.

Needs the extra ``agent_framework``.
"""

from toolrt.plugins.agent_framework._middleware import ordering

__all__ = ["ordering"]
