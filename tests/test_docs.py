"""The guide to embedders cannot lie: its examples run as they stand, and its provider keeps the contract."""

import inspect
import re
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import embedding_faults as lies
import pytest

from openclaw_memory import MemoryConfig, load_embedder
from openclaw_memory.config.sections import EmbeddingConfig
from openclaw_memory.embeddings import gemini, hashing, local, openai, static, voyage
from openclaw_memory.embeddings.registry import list_providers
from openclaw_memory.errors import EmbedderError
from openclaw_memory.testing import check_embedder

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "docs" / "how-to" / "embedders.md").read_text(encoding="utf-8")
LOCALHOST = re.compile(r"http://localhost:\d+/v1")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def rows(header: str) -> dict[str, str]:
    """The table that begins with `header`: what it says of each provider that a first cell names."""
    found: dict[str, str] = {}
    for line in GUIDE.split(f"\n{header}", 1)[1].split("\n\n", 1)[0].splitlines():
        if names := re.match(r"\| `(\w+)`(?:, `(\w+)`)?", line):
            found = {**dict.fromkeys(filter(None, names.groups()), line[names.end() :]), **found}
    return found


PROVIDER = next(block for block in blocks("python") if "def create(" in block)
PROJECT = next(block for block in blocks("toml") if "entry-points" in block)
SETTINGS = [block for block in blocks("toml") if block != PROJECT]


@pytest.fixture
def own_server(embedding_server, monkeypatch):
    """The server that takes the place of every service in the guide, whatever the environment says."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-for-tests")
    monkeypatch.setenv("OPENAI_BASE_URL", embedding_server.base_url("openai"))
    return embedding_server


@pytest.fixture
def acme(tmp_path, monkeypatch):
    """The provider of the guide, installed beside us as its TOML says."""
    points = tomllib.loads(PROJECT)["project"]["entry-points"]
    (module,) = {value.partition(":")[0] for value in points["openclaw_memory.embedders"].values()}
    folder = tmp_path / "site-packages"
    facts = folder / f"{module}-1.0.dist-info"
    facts.mkdir(parents=True)
    (folder / f"{module}.py").write_text(PROVIDER, encoding="utf-8")
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", encoding="utf-8")
    lines = [f"{name} = {value}" for name, value in points["openclaw_memory.embedders"].items()]
    (facts / "entry_points.txt").write_text("\n".join(["[openclaw_memory.embedders]", *lines]), encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    yield SimpleNamespace(module=module)
    sys.modules.pop(module, None)


@pytest.mark.usefixtures("notes", "acme")
@pytest.mark.nightly
def test_the_examples_run_in_their_order(tmp_path, monkeypatch, capsys, own_server):
    url = own_server.base_url("openai")
    monkeypatch.chdir(tmp_path)
    Path("settings.toml").write_text(LOCALHOST.sub(url, SETTINGS[0]), encoding="utf-8")
    namespace = {"__name__": "guide"}
    for number, block in enumerate(blocks("python")):
        exec(compile(LOCALHOST.sub(url, block), f"block {number} of embedders.md", "exec"), namespace)
    first, rebuilt, *progress = capsys.readouterr().out.splitlines()
    assert first.startswith(("MEMORY.md#L", "memory/"))
    assert rebuilt == "the embedder was openai embeddinggemma and is now openai text-embedding-3-small"
    assert any(re.fullmatch(r"4/4 files.*, \d+ texts/s, [\d,]+ tokens", line) for line in progress)
    models = {asked.model for asked in own_server.seen()}
    assert models == {"embeddinggemma", "text-embedding-3-small", "acme-embed-1"}


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_settings_can_be_loaded(tmp_path, settings):
    (tmp_path / "settings.toml").write_text(settings, encoding="utf-8")
    config = MemoryConfig.from_toml(tmp_path / "settings.toml")
    assert config.embedding != EmbeddingConfig()
    assert not config.notices


@pytest.mark.usefixtures("acme")
def test_the_provider_is_found_by_its_name_and_keeps_the_contract(own_server):
    assert "acme" in list_providers()
    embedder = load_embedder("acme", base_url=own_server.base_url("openai"))
    assert embedder is not None
    check_embedder(embedder)
    before = own_server.stats()["embed_requests"]
    own_server.script(lies.status(429, retry_after=0), lies.status(429, retry_after=0), lies.status(401))
    with pytest.raises(EmbedderError, match=r"401.*check key"):
        embedder.embed_documents(["The kettle is in the shed."])
    assert own_server.stats()["embed_requests"] - before == 3


def test_each_provider_is_in_the_table():
    assert set(rows("| Provider | Needs |")) == {*list_providers(), "none"}


@pytest.mark.parametrize(
    ("provider", "facts"),
    [
        ("static", [static.MODEL]),
        ("local", [local.DEFAULT_MODEL]),
        ("openai", [openai.DEFAULT_MODEL, f"{openai.MAX_INPUT_TOKENS:,} tokens, {openai.MAX_ITEMS:,} texts"]),
        ("gemini", [gemini.DEFAULT_MODEL, f"{gemini.INPUT_TOKENS:,} tokens, {gemini.MAX_ITEMS:,} texts"]),
        ("voyage", [voyage.DEFAULT_MODEL, f"{voyage.INPUT_TOKENS:,} tokens, {voyage.MAX_ITEMS:,} texts"]),
        ("hashing", [hashing.HashingEmbedder.model]),
    ],
)
def test_default_models_and_limits_are_those_of_the_code(provider, facts):
    row = rows("| Provider | Needs |")[provider]
    assert [fact for fact in facts if fact not in row] == []


@pytest.mark.parametrize("module", [gemini, hashing, local, openai, voyage], ids=lambda module: module.__name__)
def test_the_options_of_a_provider_are_listed(module):
    listed = re.findall(r"`(\w+)`", rows("| Provider | Options")[module.__name__.rpartition(".")[2]])
    assert sorted(["model", *listed]) == sorted(inspect.signature(module.create).parameters)


@pytest.mark.parametrize(
    "words",
    [
        f"({EmbeddingConfig().query_seconds:g}; {MemoryConfig.openclaw().embedding.query_seconds:g} in OpenClaw's preset)",
        f"`embedding.max_entries` ({EmbeddingConfig().max_entries:,})",
        f"the server alone, such as\n`{gemini.ENDPOINT}`",
    ],
)
def test_the_numbers_are_those_of_the_code(words):
    assert words in GUIDE
