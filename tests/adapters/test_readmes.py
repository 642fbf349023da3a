"""The adapters' READMEs cannot lie: their examples run in their order and print what is below them."""

from pathlib import Path

import pytest
from adapter_readmes import check_examples
from played_models import played

ADAPTERS = Path(__file__).parents[2] / "adapters"


@pytest.mark.nightly
@pytest.mark.parametrize("package", ["langchain_openclaw_memory", "llama_index_openclaw_memory"])
def test_the_examples_of_an_adapter_run_in_their_order(tmp_path, monkeypatch, package):
    monkeypatch.chdir(tmp_path)
    readme = (ADAPTERS / package / "README.md").read_text(encoding="utf-8")
    check_examples(readme.replace('init_chat_model("openai:gpt-5-mini")', "played"), {"played": played})
