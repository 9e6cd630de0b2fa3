"""Which frameworks are held to the laws, by which of their own means, and why a law is broken where it is.

Each cause was read in the framework's code at the pinned version.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

__all__ = ["FRAMEWORKS", "ROWS", "Framework", "Row"]


@attrs.frozen
class Framework:
    """One framework, in an environment of its own."""

    name: str
    #: What pip installs.
    distribution: str
    version: str
    #: The Python that it needs; empty: the one that runs the command.
    python: str = ""
    #: Packages that the adapter needs beside it, each pinned.
    beside: tuple[str, ...] = ()


@attrs.frozen
class Row:
    """One way to use a framework."""

    #: The name of the framework; empty: none, the adapter needs only toolrt.
    framework: str
    #: By what means, in the framework's own words.
    means: str
    #: ``module:attribute``.
    adapter: str
    #: For each law that it breaks, why: what its code does.
    causes: Mapping[str, str] = {}

    @property
    def title(self) -> str:
        """What names the row in the record and heads its section."""
        return f"{self.framework}: {self.means}" if self.framework else self.means


def _of(laws: str, cause: str) -> dict[str, str]:
    """The same cause for each of `laws`, which are apart by blanks."""
    return dict.fromkeys(laws.split(), cause)


_ORDER = "same_file_in_call_order exclusive_alone same_as_oracle cancel_truthful"

FRAMEWORKS = {
    framework.name: framework
    for framework in (
        Framework("LangGraph", "langgraph", "1.2.22"),
        Framework("OpenAI Agents SDK", "openai-agents", "0.24.0"),
        Framework("PydanticAI", "pydantic-ai-slim", "2.68.0"),
        Framework("Strands", "strands-agents", "1.62.0"),
        Framework("Google ADK", "google-adk", "2.13.0"),
        Framework("Microsoft Agent Framework", "agent-framework-core", "1.23.0"),
        Framework("LlamaIndex", "llama-index-core", "0.14.25"),
        Framework("AutoGen AgentChat", "autogen-agentchat", "0.7.5"),
        Framework("AG2", "ag2", "1.2.1"),
        Framework("Haystack", "haystack-ai", "3.4.0"),
        Framework("Agno", "agno", "3.1.10"),
        Framework("smolagents", "smolagents", "1.26.0"),
        Framework("Semantic Kernel", "semantic-kernel", "1.45.0"),
        Framework("DSPy", "dspy", "3.4.1"),
        Framework("CrewAI", "crewai", "1.15.30"),
        Framework("kosong", "kosong", "0.56.0", python="python3.13"),
    )
}

_HERE = "tests.frameworks.adapters"

ROWS = (
    Row("", "a serial executor", "tests.conformance._executors:Serial"),
    Row("", "toolrt, through `toolrt.aio`", "tests.conformance._executors:Toolrt"),
    Row(
        "",
        "`asyncio.gather`, five lines",
        "tests.conformance._executors:Gather",
        {
            **_of(_ORDER, "All calls start at once."),
            **_of(
                "answered_once same_as_oracle failure_contained nothing_left",
                "The first exception comes out of gather, and the other calls run on.",
            ),
        },
    ),
    Row(
        "LangGraph",
        "`ToolNode`",
        f"{_HERE}.langgraph:Node",
        {
            **_of(_ORDER, "`ToolNode._afunc` awaits all calls of a message with one `asyncio.gather`."),
            **_of(
                "answered_once same_as_oracle failure_contained nothing_left",
                "The default error handler raises again what is no error of the arguments; `asyncio.gather` hands on"
                " the first error and leaves the other calls running.",
            ),
        },
    ),
    Row(
        "LangGraph",
        "`ToolNode(handle_tool_errors=True)`",
        f"{_HERE}.langgraph:NodeWithErrors",
        _of(_ORDER, "`ToolNode._afunc` awaits all calls of a message with one `asyncio.gather`."),
    ),
    Row(
        "LangGraph",
        "`create_react_agent`, `handle_tool_errors=True`",
        f"{_HERE}.langgraph:Agent",
        _of(_ORDER, "The agent sends each call to a task of its own (`Send`), and the tasks of one step run at once."),
    ),
    Row("LangGraph", "the same, `max_concurrency=1`", f"{_HERE}.langgraph:OneTask"),
    Row("LangGraph", "the same, `parallel_tool_calls=False`", f"{_HERE}.langgraph:OneCallATurn"),
    Row(
        "OpenAI Agents SDK",
        "as it is",
        f"{_HERE}.openai_agents:AsItIs",
        _of(_ORDER, "`tool_execution.py` starts a task for each call, and without a limit all at once."),
    ),
    Row(
        "OpenAI Agents SDK",
        "`ToolExecutionConfig(max_function_tool_concurrency=1)`",
        f"{_HERE}.openai_agents:OneAtOnce",
    ),
    Row("OpenAI Agents SDK", "`parallel_tool_calls=False`", f"{_HERE}.openai_agents:OneCallATurn"),
    Row(
        "PydanticAI",
        "as it is",
        f"{_HERE}.pydantic_ai:AsItIs",
        {
            **_of(
                _ORDER, "`_tool_execution.py` starts a task for each call up to the next tool with `sequential=True`."
            ),
            **_of(
                "answered_once same_as_oracle failure_contained",
                "An exception that is no `ToolFailed` or `ModelRetry` ends the run, and the other calls are cancelled.",
            ),
        },
    ),
    Row(
        "PydanticAI",
        "`ToolFailed`",
        f"{_HERE}.pydantic_ai:ToldErrors",
        _of(_ORDER, "`_tool_execution.py` starts a task for each call up to the next tool with `sequential=True`."),
    ),
    Row("PydanticAI", "`ToolFailed`, `sequential=True` for what is not safe", f"{_HERE}.pydantic_ai:Sequential"),
    Row("PydanticAI", "`ToolFailed`, the sequential mode", f"{_HERE}.pydantic_ai:AllSequential"),
    Row("PydanticAI", "`ToolFailed`, `parallel_tool_calls=False`", f"{_HERE}.pydantic_ai:OneCallATurn"),
    Row(
        "Strands",
        "`ConcurrentToolExecutor`, the default",
        f"{_HERE}.strands:Concurrent",
        _of(_ORDER, "`ConcurrentToolExecutor._execute` makes a task for each call at once."),
    ),
    Row("Strands", "`SequentialToolExecutor`", f"{_HERE}.strands:Sequential"),
    Row(
        "Google ADK",
        "as it is",
        f"{_HERE}.google_adk:AsItIs",
        {
            **_of(_ORDER, "`_batch_executor.py` starts a task for each call, all at once."),
            **_of(
                "answered_once same_as_oracle failure_contained",
                "An exception that no callback answers ends the run; `_gather_or_cancel` cancels the other calls.",
            ),
        },
    ),
    Row(
        "Google ADK",
        "`on_tool_error_callback`",
        f"{_HERE}.google_adk:ToldErrors",
        _of(_ORDER, "`_batch_executor.py` starts a task for each call, all at once."),
    ),
    Row(
        "Microsoft Agent Framework",
        "as it is",
        f"{_HERE}.agent_framework:AsItIs",
        _of(_ORDER, "`_try_execute_function_call_groups` awaits a task for each call with one `asyncio.gather`."),
    ),
    Row("Microsoft Agent Framework", "`allow_concurrent_invocation=False`", f"{_HERE}.agent_framework:OneAtOnce"),
    Row("Microsoft Agent Framework", "`allow_multiple_tool_calls=False`", f"{_HERE}.agent_framework:OneCallATurn"),
    Row(
        "LlamaIndex",
        "as it is",
        f"{_HERE}.llama_index:AsItIs",
        {
            **_of(_ORDER, "The workflow takes each call as an event, and up to four run at once."),
            **_of("results_in_call_order", "`collect_events` gives the results in the order in which calls ended."),
            **_of(
                "nothing_left_after_cancel",
                "The workflow runs in tasks of its own; what is cancelled is the task that awaits its handler.",
            ),
        },
    ),
    Row(
        "LlamaIndex",
        "cancelled by `cancel_run()`",
        f"{_HERE}.llama_index:CancelRun",
        {
            **_of(_ORDER, "The workflow takes each call as an event, and up to four run at once."),
            **_of("results_in_call_order", "`collect_events` gives the results in the order in which calls ended."),
        },
    ),
    Row(
        "LlamaIndex",
        "`allow_parallel_tool_calls=False`, cancelled by `cancel_run()`",
        f"{_HERE}.llama_index:OneCallATurn",
    ),
    Row(
        "AutoGen AgentChat",
        "as it is",
        f"{_HERE}.autogen:AsItIs",
        {
            **_of(_ORDER, "`_process_model_result` awaits all calls with one `asyncio.gather`."),
            **_of(
                "nothing_left_after_cancel",
                "The calls run in a task of their own; what is cancelled is the agent, which waits on a queue.",
            ),
        },
    ),
    Row(
        "AutoGen AgentChat",
        "cancelled by its `CancellationToken`",
        f"{_HERE}.autogen:Token",
        _of(_ORDER, "`_process_model_result` awaits all calls with one `asyncio.gather`."),
    ),
    Row(
        "AutoGen AgentChat",
        "`parallel_tool_calls=False`, cancelled by its `CancellationToken`",
        f"{_HERE}.autogen:OneCallATurn",
    ),
    Row(
        "AG2",
        "as it is",
        f"{_HERE}.ag2:AsItIs",
        _of(_ORDER, "`ToolExecutor.execute_tools` awaits a task for each call with one `asyncio.gather`."),
    ),
    Row("AG2", "`parallel_tool_calls=False`", f"{_HERE}.ag2:OneCallATurn"),
    Row(
        "Haystack",
        "as it is",
        f"{_HERE}.haystack:AsItIs",
        _of(_ORDER, "`_run_tool_async` awaits the calls of a batch with one `asyncio.gather`, four at once."),
    ),
    Row("Haystack", "`tool_concurrency_limit=1`", f"{_HERE}.haystack:OneAtOnce"),
    Row(
        "Haystack",
        "files as a key of the state",
        f"{_HERE}.haystack:KeyOfState",
        {
            **_of(
                "same_file_in_call_order same_as_oracle",
                "`_schedule_tool_calls` runs a call that reads a key after all that write it, the later ones too.",
            ),
            **_of("exclusive_alone", "A call that touches no key runs beside one that does."),
        },
    ),
    Row("Haystack", "a `State` parameter in every tool", f"{_HERE}.haystack:StateParameter"),
    Row(
        "Agno",
        "`arun`",
        f"{_HERE}.agno:AsItIs",
        _of(_ORDER, "`arun_function_calls` awaits all calls with one `asyncio.gather`."),
    ),
    Row("Agno", "`run` in a worker thread", f"{_HERE}.agno:InThread"),
    Row(
        "smolagents",
        "as it is",
        f"{_HERE}.smolagents:AsItIs",
        {
            **_of("same_file_in_call_order exclusive_alone same_as_oracle", "Each call has a thread, all at once."),
            **_of(
                "results_in_call_order",
                "`process_tool_calls` gives the results in the order of the calls' ids as texts, which providers draw.",
            ),
            **_of(
                "answered_once failure_contained",
                "The first error ends the step, and the model is told of it alone: the results of the others are lost.",
            ),
        },
    ),
    Row(
        "smolagents",
        "`max_tool_threads=1`",
        f"{_HERE}.smolagents:OneThread",
        {
            **_of(
                "results_in_call_order",
                "`process_tool_calls` gives the results in the order of the calls' ids as texts, which providers draw.",
            ),
            **_of(
                "answered_once failure_contained",
                "The first error ends the step, and the model is told of it alone: the results of the others are lost.",
            ),
        },
    ),
    Row(
        "Semantic Kernel",
        "as it is",
        f"{_HERE}.semantic_kernel:AsItIs",
        {
            **_of(_ORDER, "`get_chat_message_contents` awaits all calls with one `asyncio.gather`."),
            **_of(
                "results_in_call_order",
                "`Kernel.invoke_function_call` adds each result to the chat history when its call ends.",
            ),
        },
    ),
    Row("Semantic Kernel", "`parallel_tool_calls=False`", f"{_HERE}.semantic_kernel:OneCallATurn"),
    Row("DSPy", "`ReActV2`", f"{_HERE}.dspy:AsItIs"),
    Row(
        "CrewAI",
        "`kickoff_async`",
        f"{_HERE}.crewai:AsItIs",
        {
            **_of(
                "same_file_in_call_order exclusive_alone same_as_oracle cancel_truthful",
                "`execute_native_tool` submits all calls to a pool of threads, which start them in any order.",
            ),
            **_of("nothing_left_after_cancel", "The calls run in worker threads, which a cancel does not reach."),
        },
    ),
    Row(
        "CrewAI",
        "`max_usage_count` on every tool, which makes calls run in turn",
        f"{_HERE}.crewai:Limited",
        _of(
            "cancel_truthful nothing_left_after_cancel",
            "The calls run in a worker thread, which a cancel does not reach; it goes on with the next one.",
        ),
    ),
    Row(
        "kosong",
        "`step` with a `SimpleToolset`",
        f"{_HERE}.kosong:AsItIs",
        _of(_ORDER, "`SimpleToolset.handle` starts a task for each call as soon as the model has said it."),
    ),
)
