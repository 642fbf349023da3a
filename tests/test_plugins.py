"""Plug-ins: what a package adds is found by its name, with a clear error where it is missing or broken."""

from typing import Annotated, Literal

import pytest
from msgspec import Meta, Struct

from openclaw_memory import MemoryConfig
from openclaw_memory.config import read_plugin_settings
from openclaw_memory.errors import ConfigError
from openclaw_memory.plugins import has_plugin, list_plugins, load_plugin
from openclaw_memory.store.registry import choose_store
from openclaw_memory.types.codec import PlainText


@pytest.fixture
def _plugin(tmp_path, monkeypatch):
    """An installed package `greeting` that adds two commands, one of which cannot be imported."""
    (tmp_path / "greeting.py").write_text("import click\n\n@click.command()\ndef greet():\n    click.echo('hello')\n")
    metadata = tmp_path / "greeting-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[openclaw_memory.commands]\ngreet = greeting:greet\nbroken = greeting:missing\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("_plugin")
def test_a_package_adds_a_command_by_an_entry_point(run):
    assert "greet" in list_plugins("commands")
    assert run("greet").out == "hello\n"
    assert "greet" in run("--help").out


@pytest.mark.usefixtures("_plugin")
def test_a_plugin_that_cannot_be_loaded_is_named_with_what_to_do(run):
    with pytest.raises(ConfigError, match=r"'broken' \(greeting:missing\).*install it again"):
        load_plugin("commands", "broken")
    assert "(greeting:missing)" in run("broken").err


@pytest.mark.usefixtures("_plugin")
def test_an_unknown_plugin_is_an_error_that_lists_the_known_ones():
    assert not has_plugin("commands", "gret")
    with pytest.raises(ConfigError, match=r"'gret'.*greet"):
        load_plugin("commands", "gret")


def test_a_package_of_ours_that_is_not_there_adds_nothing(monkeypatch):
    monkeypatch.setattr("openclaw_memory.plugins.find_spec", lambda _: None)
    assert not has_plugin("commands", "mcp")
    assert "mcp" not in list_plugins("commands")


class GreetingConfig(Struct, frozen=True):
    words: tuple[str, ...] = ("hello",)
    times: Annotated[int, Meta(ge=1, le=3)] = 1
    tone: Literal["warm", "cool"] = "warm"


def test_a_plugin_reads_its_own_table_of_settings(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('[defaults.plugins.greeting]\nwords = ["hi"]\n[agents.anna.plugins.greeting]\ntimes = 2\n')
    config = MemoryConfig.from_toml(file, agent="anna")
    assert read_plugin_settings(config, "greeting", GreetingConfig) == GreetingConfig(("hi",), 2)
    assert read_plugin_settings(MemoryConfig(), "greeting", GreetingConfig) == GreetingConfig()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"word": 1}, "unknown key plugins.greeting.word; did you mean 'words'"),
        ({"times": "2"}, "plugins.greeting.times must be a whole number"),
        ({"times": 4}, r"plugins.greeting.times = 4 is outside \[1, 3\]"),
        ({"tone": "loud"}, "plugins.greeting.tone must be one of warm, cool"),
    ],
)
def test_a_wrong_setting_of_a_plugin_is_refused_by_name(table, message):
    with pytest.raises(ConfigError, match=message):
        read_plugin_settings(MemoryConfig(plugins={"greeting": table}), "greeting", GreetingConfig)


def test_settings_of_plugins_are_tables():
    with pytest.raises(ConfigError, match="plugins must be a table of tables"):
        MemoryConfig().replace({"plugins": {"greeting": 1}})


def test_a_codec_that_encrypts_and_makes_no_hook_opens_no_plain_index(tmp_path, monkeypatch):
    monkeypatch.setattr(PlainText, "is_active", True)
    with pytest.raises(ConfigError, match="PlainText makes no hook"):
        choose_store(None, tmp_path, codec=PlainText())
