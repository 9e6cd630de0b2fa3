"""The OpenAI SDK: a streamed reply of Responses or Chat Completions runs as a batch while the model still speaks.

``await run(runtime, client.responses.create(..., tools=tools(runtime), stream=True))`` gives the turn, and the next
request adds its ``messages``; `run_chat` and `chat_tools` are the same for Chat Completions.  Both asyncio and Trio
programs await them.  See docs/how-to/openai.md.
"""

from toolrt.plugins.openai._chat import ChatTurn, chat_tools, run_chat
from toolrt.plugins.openai._responses import ResponsesTurn, run, tools

__all__ = ["ChatTurn", "ResponsesTurn", "chat_tools", "run", "run_chat", "tools"]
