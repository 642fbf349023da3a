"""What importing the package loads, and what it says where LlamaIndex is missing."""

import llama_index_openclaw_memory
import pytest
from uninstalled import run_without


@pytest.mark.parametrize("name", llama_index_openclaw_memory.__all__)
def test_every_public_name_is_there_and_documented(name):
    assert getattr(llama_index_openclaw_memory, name).__doc__
    assert name in dir(llama_index_openclaw_memory)


def test_an_unknown_name_is_answered_with_those_there_are():
    with pytest.raises(AttributeError, match="OpenClawRetriever"):
        llama_index_openclaw_memory.OpenClawRetriver  # noqa: B018


def test_without_llama_index_the_import_says_which_extra_to_install():
    script = """
try:
    import llama_index_openclaw_memory
except MissingExtraError as error:
    print(error)
"""
    assert '"openclaw-memory-index[llama-index]"' in run_without(script, "llama_index")


def test_importing_the_package_loads_neither_the_framework_nor_numpy():
    script = """
import llama_index_openclaw_memory
print(sorted(name for name in sys.modules if name in {"llama_index.core", "pydantic", "numpy", "apsw", "asyncio"}))
"""
    assert run_without(script) == "[]"


def test_each_name_loads_beside_the_framework_this_library_alone_and_not_its_engine():
    script = """
import llama_index.core
before = set(sys.modules)
import llama_index_openclaw_memory as package
for name in package.__all__:
    getattr(package, name)
print(*sorted({module.partition(".")[0] for module in set(sys.modules) - before} - sys.stdlib_module_names))
"""
    assert set(run_without(script).split()) <= {"llama_index", "llama_index_openclaw_memory", "openclaw_memory"}
