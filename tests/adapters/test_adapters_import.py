"""What importing the packages of the adapters loads, and what they say where their frameworks are missing."""

import re
import sys
from pathlib import Path

import langchain_openclaw_memory
import llama_index_openclaw_memory
import pytest
from adapter_readmes import check_arguments, check_examples, check_links, check_names
from played_models import SERVICES, played
from uninstalled import run_without

PACKAGES = [langchain_openclaw_memory, llama_index_openclaw_memory]
OF_AGENTS = {
    *("OpenClawStore", "OpenClawSummarizationMiddleware", "OpenClawRecallMiddleware"),
    *("OpenClawIntentMiddleware", "OpenClawSessionStartMiddleware", "OpenClawTranscriptMiddleware"),
}
LOADED = 'loaded = lambda names: sorted({name.partition(".")[0] for name in sys.modules} & set(names.split()))'


@pytest.mark.parametrize(("package", "name"), [(package, name) for package in PACKAGES for name in package.__all__])
def test_every_public_name_is_there_and_documented(package, name):
    assert getattr(package, name).__doc__
    assert name in dir(package)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_readme_shows_every_name_and_the_arguments_that_signatures_have(package):
    readme = (Path(package.__file__).parent / "README.md").read_text(encoding="utf-8")
    check_names(readme, package.__all__)
    check_links(readme)
    check_arguments(package.__name__, readme)


@pytest.mark.nightly
@pytest.mark.parametrize("package", PACKAGES)
def test_the_examples_of_a_readme_run_in_their_order_and_print_what_it_says(tmp_path, monkeypatch, package):
    for name, service in SERVICES.items():
        monkeypatch.setitem(sys.modules, name, service)
    monkeypatch.chdir(tmp_path)
    readme = (Path(package.__file__).parent / "README.md").read_text(encoding="utf-8")
    check_examples(readme.replace('init_chat_model("openai:gpt-5-mini")', "played"), {"played": played})


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_name_is_named_in_the_error(package):
    with pytest.raises(AttributeError, match="OpenClawRetriver"):
        package.OpenClawRetriver  # noqa: B018


def test_without_a_framework_the_import_says_which_extra_to_install():
    script = """
for package in ("langchain_openclaw_memory", "llama_index_openclaw_memory"):
    try:
        __import__(package)
    except MissingExtraError as error:
        print(error)
"""
    printed = run_without(script, "langchain_core", "langchain", "langgraph", "llama_index").split("\n")
    assert ['".[langchain]"' in printed[0], '".[llama-index]"' in printed[1]] == [True, True]


def test_without_agents_the_rest_works_loads_no_engine_and_each_name_says_which_extra_to_install():
    script = """
import llama_index_openclaw_memory, langchain_openclaw_memory as package
assert loaded("pydantic numpy apsw asyncio langchain_core") == []
from langchain_openclaw_memory import OpenClawRetriever
assert loaded("apsw numpy") == []
for name in package.__all__:
    try:
        getattr(package, name)
    except MissingExtraError as error:
        assert name in str(error), error
        assert '".[langchain-agents]"' in str(error), error
        print(name)
"""
    needing = set(run_without(LOADED + script, "langchain", "langgraph").split())
    assert needing >= OF_AGENTS
    assert not needing & {
        "OpenClawFlushCallback", "OpenClawEmbeddings", "OpenClawRetriever", "OpenClawVectorStore", "memory_tools",
    }  # fmt: skip


def test_an_import_that_fails_for_another_reason_keeps_its_own_words():
    script = """
import langchain_openclaw_memory
try:
    langchain_openclaw_memory.OpenClawRetriever
except ImportError as error:
    print(type(error).__name__, error)
"""
    assert re.match("(?!MissingExtraError).*pydantic", run_without(script, "pydantic"))


@pytest.mark.nightly
def test_each_name_of_llama_index_loads_this_library_alone_and_not_its_engine():
    script = """
import llama_index.core
before = set(sys.modules)
import llama_index_openclaw_memory as package
for name in package.__all__:
    getattr(package, name)
print(*sorted({module.partition(".")[0] for module in set(sys.modules) - before} - sys.stdlib_module_names))
"""
    ours = {"llama_index", "llama_index_openclaw_memory", "openclaw_memory", "Stemmer", "msgspec"}
    assert {name for name in run_without(script).split() if name[0] != "_"} <= ours
