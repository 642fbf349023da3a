"""The README cannot lie: its examples run, its commands and extras exist, its links and limits hold."""

import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
from adapter_readmes import EXAMPLE, check_links
from every_command import COMMANDS
from played_models import SERVICES, played

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = EXAMPLE.findall(README)
TYPED = re.findall(r"^openclaw-memory (.+?)(?: +#.*)?$", README, re.MULTILINE)


def test_the_examples_run_in_their_order_and_print_what_the_readme_says(tmp_path, monkeypatch, capfd):
    for name, service in SERVICES.items():
        monkeypatch.setitem(sys.modules, name, service)
    monkeypatch.chdir(tmp_path)
    code = "\n".join(code for code, _ in EXAMPLES).replace('"openai:gpt-5-mini"', "played")
    exec(compile(code, "README.md", "exec"), {"__name__": "readme", "played": played})
    assert capfd.readouterr() == ("".join(printed for _, printed in EXAMPLES), "")


@pytest.mark.parametrize(
    ("package", "extra"),
    [("langchain_openclaw_memory", "langchain-agents"), ("llama_index_openclaw_memory", "llama-index")],
)
def test_the_line_above_an_adapters_example_says_what_installs_it(package, extra):
    above = README.partition(f"from {package} import")[0].rpartition("```python")[0].splitlines()[-2:]
    assert f'pip install ".[{extra}]"' in "".join(above)


@pytest.mark.parametrize("line", TYPED)
def test_what_is_to_be_typed_is_understood(line):
    name, *arguments = shlex.split(line)
    COMMANDS[name].make_context(name, arguments, resilient_parsing=False)


def test_every_extra_that_is_named_exists():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = set(re.findall(r'"\.\[([a-z-]+)\]"', README))
    assert named > {"langchain-agents", "llama-index", "notebooks"}
    assert named <= set(extras)


def test_every_file_that_is_linked_exists_and_every_heading_too():
    linked = re.findall(r"\]\((?!https?:|#)([^)#]+)(?:#([^)]+))?\)", README)
    assert linked
    assert not [path for path, _ in linked if not (ROOT / path).exists()]
    for path, heading in linked:
        if heading:
            text = (ROOT / path).read_text(encoding="utf-8")
            check_links(f"{text}\n[there](#{heading})")
