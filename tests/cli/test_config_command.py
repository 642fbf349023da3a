"""The command that shows which settings hold."""

import json

import pytest

from openclaw_memory.cli import find_workspace


@pytest.fixture
def file(tmp_path, monkeypatch):
    file = tmp_path / "config/config.toml"
    monkeypatch.setattr(find_workspace, "locate_settings", lambda: file)
    return file


def test_the_settings_that_hold_are_shown_with_where_they_are_from(run, notes, file):
    file.parent.mkdir()
    file.write_text(f'[workspaces]\nhome = "{notes}"\n[defaults]\nsearch.max_results = 3\n', encoding="utf-8")
    (notes / ".memory").mkdir()
    (notes / ".memory/config.toml").write_text('[files]\nexclude = ["drafts/"]\n', encoding="utf-8")
    shown = run("config", "-w", "home").out
    assert f"workspace  {notes} (--workspace names it 'home')" in shown
    assert f"settings   {file}" in shown
    assert "[search]\nmax_results = 3\n" in shown
    assert '[files]\nexclude = ["drafts/"]\n' in shown
    assert "min_score" not in shown
    known = json.loads(run("config", "--json", "-w", "home").out)
    assert known["settings"] == {"search": {"max_results": 3}, "files": {"exclude": ["drafts/"]}}


def test_a_key_in_the_settings_is_not_shown(run, notes, file):
    file.parent.mkdir()
    file.write_text('[defaults.embedding.providers.openai]\napi_key = "hunter2-hunter2"\n', encoding="utf-8")
    for options in ([], ["--json"]):
        outcome = run("config", "-w", notes, *options)
        assert "api_key" in outcome.out
        assert "hunter2" not in outcome.out + outcome.err


def test_what_is_set_and_not_read_is_said_by_config_status_and_doctor(run, notes, tmp_path):
    settings = tmp_path / "settings.toml"
    settings.write_text("[defaults]\nchunking.tokens = 400\nembedding.query_seconds = 2\n", encoding="utf-8")
    for command in ("config", "status", "doctor"):
        outcome = run(command, "-w", notes, "-c", settings)
        for name, other in (("chunking.tokens", "chunking.style"), ("embedding.query_seconds", "a service")):
            assert f"{name} is set and not read: it needs {other}" in " ".join((outcome.out + outcome.err).split())
