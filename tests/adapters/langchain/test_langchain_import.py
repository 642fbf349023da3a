"""What importing the package loads, and what it says where LangChain is missing."""

import re

import langchain_openclaw_memory
import pytest
from uninstalled import run_without

OF_AGENTS = {"MemoryFlushMiddleware", "OpenClawStore", "RecallMiddleware", "TranscriptMiddleware"}


@pytest.mark.parametrize("name", langchain_openclaw_memory.__all__)
def test_every_public_name_is_there_and_documented(name):
    assert getattr(langchain_openclaw_memory, name).__doc__
    assert name in dir(langchain_openclaw_memory)


def test_an_unknown_name_is_answered_with_those_there_are():
    with pytest.raises(AttributeError, match="OpenClawRetriever"):
        langchain_openclaw_memory.OpenClawRetriver  # noqa: B018


def test_without_langchain_the_import_says_which_extra_to_install():
    script = """
try:
    import langchain_openclaw_memory
except MissingExtraError as error:
    print(error)
"""
    assert '"openclaw-memory-index[langchain]"' in run_without(script, "langchain_core", "langchain", "langgraph")


def test_without_agents_the_rest_works_and_each_name_says_which_extra_to_install():
    script = """
import langchain_openclaw_memory as package
for name in package.__all__:
    try:
        getattr(package, name)
    except MissingExtraError as error:
        assert name in str(error), error
        assert '"openclaw-memory-index[langchain-agents]"' in str(error), error
        print(name)
"""
    needing = set(run_without(script, "langchain", "langgraph").split())
    assert needing >= OF_AGENTS
    assert not needing & {
        "LangChainEmbedder",
        "MemoryFlushCallback",
        "OpenClawEmbeddings",
        "OpenClawRetriever",
        "OpenClawToolkit",
        "OpenClawVectorStore",
        "memory_tools",
    }


def test_an_import_that_fails_for_another_reason_keeps_its_own_words():
    script = """
import langchain_openclaw_memory
try:
    langchain_openclaw_memory.OpenClawRetriever
except ImportError as error:
    print(type(error).__name__, error)
"""
    assert re.match("(?!MissingExtraError).*pydantic", run_without(script, "pydantic"))


def test_importing_the_package_loads_neither_frameworks_nor_the_core():
    script = """
import langchain_openclaw_memory
print(sorted({name.partition(".")[0] for name in sys.modules} & {"langchain_core", "langchain", "langgraph", "numpy"}))
"""
    assert run_without(script, "nothing") == "[]"


def test_retriever_and_tools_load_no_agents_and_no_numpy():
    script = """
from langchain_openclaw_memory import OpenClawRetriever, OpenClawToolkit
print(sorted({name.partition(".")[0] for name in sys.modules} & {"langchain", "langgraph", "apsw", "numpy"}))
"""
    assert run_without(script, "nothing") == "[]"
