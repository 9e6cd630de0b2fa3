"""The Anthropic SDK: a streamed reply of the Messages API runs as a batch while the model still speaks.

``await run(runtime, client.messages.create(..., tools=tools(runtime), stream=True))`` gives the turn whose ``messages``
the next request adds.  It is awaited from asyncio and from Trio alike.  See docs/how-to/anthropic.md.
"""

from toolrt.plugins.anthropic._turn import AnthropicTurn, run, tools

__all__ = ["AnthropicTurn", "run", "tools"]
