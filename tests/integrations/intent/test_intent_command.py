"""The command that finds out by phrases what a message wants: it asks no model, and writes nothing."""

import io
import json
import sys

import pytest
from openclaw_memory_intent import detect_intent

MESSAGE = "Please remember that Carla is allergic to peanuts."


@pytest.fixture
def ask(run, tmp_path):
    """Run the command on a workspace of its own."""
    return lambda *arguments: run("intent", *arguments, "--workspace", tmp_path)


def test_it_shows_what_phrases_decide_and_that_no_model_was_asked(ask, tmp_path):
    code, out, err = ask(MESSAGE)
    assert code == 0
    assert [line.split(maxsplit=1)[-1] for line in out.splitlines()] == [
        "remember", "0.60", "en", "carla, allergic, peanuts", "asking  yes", "none",
    ]  # fmt: skip
    assert err.startswith("note: no model was asked")
    assert list(tmp_path.iterdir()) == []


def test_as_json_it_is_what_detect_intent_says(ask):
    code, out, err = ask(*MESSAGE.split(), "--json")
    assert (code, err) == (0, "")
    expected = {**detect_intent(MESSAGE).to_dict(), "worth_asking": True, "by_rules": True, "suggestion": None}
    assert json.loads(out) == expected


@pytest.mark.parametrize(
    ("message", "intent", "language", "worth_asking"),
    [
        ("Vergiss alles!\n", "forget", "de", True),
        ("Qu'est-ce que je t'ai dit sur Anna ?", "query", "fr", True),
        ("Thanks!", None, "en", False),
        ("", None, "und", False),
    ],
)
def test_a_dash_reads_the_message_from_standard_input(ask, monkeypatch, message, intent, language, worth_asking):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(message.encode())))
    found = json.loads(ask("-", "--json")[1])
    assert (found["intent"], found["language"], found["worth_asking"]) == (intent, language, worth_asking)


def test_the_settings_of_the_workspace_count(ask, tmp_path):
    settings = tmp_path / "settings.toml"
    settings.write_text('[defaults.plugins.intent]\nlanguages = ["it"]\n', encoding="utf-8")
    assert json.loads(ask(MESSAGE, "--json", "--config", str(settings))[1])["intent"] is None
    settings.write_text("[defaults.plugins.intent]\nenabled = false\n", encoding="utf-8")
    _, out, err = ask(MESSAGE, "--config", str(settings))
    assert "worth asking  no" in out
    assert err.startswith("note: plugins.intent.enabled is false")


def test_what_a_message_holds_drives_no_terminal(ask):
    assert "\x1b" not in ask("Remember: \x1b[2JCarla\x1b]0;x\x07")[1]
