"""The words of names, first lines and pages: plain and idiomatic; arguments are documented on the whole public surface."""

import importlib
import inspect
import re
from pathlib import Path
from types import FunctionType

import pytest
from test_architecture import PUBLIC_MODULES
from words import find_offenders

from openclaw_memory import AsyncMemory, Memory
from openclaw_memory.backends import Backend
from openclaw_memory.types import Embedder, Store
from openclaw_memory.workspace.notes import Notes

ROOT = Path(__file__).parents[1]
# Words that a reader of LangChain or LlamaIndex would not expect, each with the one to use.
RETIRED = {
    "told|tells?|telling": "say, report",
    "nobody|nobody knows": "no one, unknown",
    "whoever": "the caller",
    "somebody": "someone, another process",
    "anew": "again",
    "mend(?:s|ed|ing)?": "fix",
    "stands?|stood": "is, says",
    "bears?": "has",
    "to be had": "available",
    "at hand": "available",
    "(?<!there )(?-i:(?:is|are) none)": "is not one",
    "talks?": "conversation",
    "beside": "next to",
}
WORD = re.compile("|".join(rf"\b(?:{words})\b" for words in RETIRED), re.IGNORECASE)
OURS = {"openclaw_memory", "langchain_openclaw_memory", "llama_index_openclaw_memory"}
PUBLIC = sorted(PUBLIC_MODULES | OURS)


@pytest.mark.parametrize("kind", ["values", "functions", "files", "first_lines"])
def test_names_and_first_lines_use_the_words_of_the_field(kind):
    """Values are nouns, functions are verbs, a file is guessed from its name, a first line is verb and object."""
    assert not find_offenders()[kind], "choose better words, by docs/contributing/words.md"


@pytest.mark.parametrize("page", sorted(["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", *(
    str(path.relative_to(ROOT)) for path in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("adapters/*/README.md"), *ROOT.glob("integrations/*/README.md")]
)]))  # fmt: skip
def test_pages_use_the_words_of_the_field(page):
    prose = re.sub(r"```.*?```|`[^`]*`|\"[^\"]*\"", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert not [match[0] for match in WORD.finditer(prose)]


def is_documented_elsewhere(owner: type, method: str) -> bool:
    """Whether a method is one of a protocol, of `Memory`, or of the framework's class that it overrides."""
    if any(method in vars(base) for base in owner.__mro__[1:]):
        return True
    interfaces = [Backend, Embedder, Store] + [Memory] * (owner in {AsyncMemory, Backend})
    return any(method in vars(interface) for interface in interfaces if interface is not owner)


def public_functions() -> dict[str, FunctionType]:
    """Every function, and every public method of a class, that a public module exports, by its name."""
    found: dict[str, FunctionType] = {}
    for module in map(importlib.import_module, PUBLIC):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value):
                found[f"{value.__module__}.{name}"] = value
            elif inspect.isclass(value) and value.__module__.partition(".")[0] in OURS:
                for method, of in vars(value).items():
                    function = getattr(of, "__func__", of)
                    is_ours = not method.startswith("_") and not is_documented_elsewhere(value, method)
                    if inspect.isfunction(function) and is_ours:
                        found[f"{value.__module__}.{name}.{method}"] = function
    return found


def undocumented(function: FunctionType) -> set[str]:
    names = {name for name in inspect.signature(function).parameters if name not in {"self", "cls"}}
    names = {name for name in names if not name.startswith("_")}
    if re.search(
        r"See `Notes\.\w+`\.$", inspect.getdoc(function) or ""
    ):  # a shorter name of that method, with its arguments
        names -= set(inspect.signature(getattr(Notes, function.__name__)).parameters)
    _, _, section = (inspect.getdoc(function) or "").partition("Args:\n")
    return {name for name in names if not re.search(rf"^\s+\**{name}\b.*:", section, re.MULTILINE)}


def test_every_public_function_documents_its_arguments():
    missing = {name: undocumented(function) for name, function in public_functions().items()}
    assert not {name: sorted(names) for name, names in missing.items() if names}
