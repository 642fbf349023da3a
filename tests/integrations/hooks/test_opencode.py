"""The Python half of OpenCode's plugin: an event and what it says in JSON, and the answer."""

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from openclaw_memory_hooks import opencode
from openclaw_memory_intent import IntentConfig, read_settings

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.cli.commands import commands
from openclaw_memory.config.sections import PolicyRule
from openclaw_memory.errors import ConfigError, InvalidInputError
from openclaw_memory.testing import RecordingEmbedder
from openclaw_memory.tools import memory_tools
from openclaw_memory.workspace import SafeFolder

ROOT = Path(__file__).parents[3]
PLUGIN = ROOT / "integrations" / "opencode_memory"
SESSION = "ses_df5187428ffebUVP47kd2c38P3"
LOG = f"sessions/{SESSION}.jsonl"
NOTE = "- The ferry to Texel leaves at seven."
TALK = [
    {"id": "msg_1", "role": "user", "timestamp": 1795479276565, "text": "When does the ferry to Texel leave?"},
    {"id": "msg_2", "role": "assistant", "timestamp": 1795479278475, "text": "It leaves at seven."},
]


NONSENSE = "the model's answer is not the JSON that was asked for"


def unasked(asked):
    raise AssertionError(f"no model is needed, and it was asked {asked}")


def told(memory, event, exchange=unasked, **given):
    return opencode.answer(event, {"sessionID": SESSION, **given}, memory, exchange)


def kept(memory):
    return [line for line in memory.get(LOG, lines=100).text.splitlines() if line]


def note_of_today(memory):
    return (memory.workspace.root / "memory" / f"{memory.sessions.flush().get_time().date()}.md").read_text()


def test_a_session_starts_with_how_to_use_the_tools_and_the_long_term_memory(memory):
    system = told(memory, "session.created")["system"]
    assert "run memory_search" in system
    assert "What comes up goes to today's note, with memory_append." in system
    assert "memory_append" not in told(memory, "session.created", tools=["memory_search"])["system"]
    assert "The harbour is Den Helder." in system


def test_what_the_memory_knows_is_recalled_for_a_message_within_bounds(memory):
    for number in range(40):
        memory.append(f"The harbour has crane number {number}, which {'often ' * 40}stands still.")
    told(memory, "session.created")
    recalled = told(memory, "chat.message", text="Which harbour is it?")["recalled"]
    assert "<recalled-memory" in recalled
    assert len(recalled) < opencode.RECALLED_CHARS + 1_000
    assert told(memory, "chat.message", text="Good morning")["recalled"].count("[memory/") <= 3


def test_a_message_that_wants_something_kept_comes_with_the_question_for_the_user(notes):
    model = Model('{"intent": "remember", "entities": ["noten"], "confidence": 0.8, "language": "nl"}')
    said = {"text": "Onthoud dat ik geen noten eet."}
    with Memory.open(notes, embedder=RecordingEmbedder()) as memory:
        assert "Zal ik dit onthouden over: noten?" in told(memory, "chat.message", model, **said)["recalled"]
        assert "Onthoud dat ik geen noten eet." in model.asked[0]
        assert "ik dit onthouden" not in told(memory, "chat.message", model, text="Thanks!")["recalled"]
    for settings in ({"enabled": False}, {"confidenceThreshold": 0.9, "languages": ["en", "zh"]}):
        config = MemoryConfig().replace(opencode.read_settings({"intentDetection": settings}))
        with Memory.open(notes, embedder=RecordingEmbedder(), config=config) as memory:
            model.replies = [json.dumps({"intent": "remember", "entities": [], "confidence": 0.8, "language": "nl"})]
            assert "ik dit onthouden" not in told(memory, "chat.message", model, **said)["recalled"]
            told(memory, "session.created")
            assert "Den Helder" in told(memory, "chat.message", text="Which harbour is it?")["recalled"]
    assert "Languages: en, zh" in model.asked[-1]


def test_a_tool_answers_as_the_librarys_own(memory):
    told(memory, "session.created")
    answered = json.loads(told(memory, "tool", tool="memory_get", args={"path": "MEMORY.md", "from": 3})["output"])
    own = {tool.name: tool for tool in memory_tools(memory)}["memory_get"].run({"path": "MEMORY.md", "from": 3}).data
    # The fence has an id of its own each time.
    assert {**answered, "text": ""} == {**own, "text": ""}
    assert "Den Helder" in answered["text"]
    assert "invalid" in told(memory, "tool", tool="memory_edit", tools=["memory_edit"], args={})["output"]


def test_each_turn_is_kept_once_with_its_secrets_masked(memory):
    secret = {"id": "msg_3", "role": "user", "text": "password=hunter2secretvalue"}
    for _ in range(2):
        assert told(memory, "session.idle", messages=[*TALK, secret]) == {}
    assert kept(memory)[:2] == ["User: When does the ferry to Texel leave?", "Assistant: It leaves at seven."]
    assert len(kept(memory)) == 3
    assert "hunter2secretvalue" not in (memory.workspace.root / LOG).read_text()


def test_what_policies_never_let_be_stored_is_neither_kept_nor_flushed(notes):
    policies = (PolicyRule("island", "never-store", pattern="Texel"),)
    with Memory.open(notes, embedder=RecordingEmbedder(), config=MemoryConfig(policies=policies)) as memory:
        model = Model("NO_REPLY")
        told(memory, "session.compacting", model, messages=TALK)
        assert kept(memory) == ["Assistant: It leaves at seven."]
        assert "Texel" not in model.asked[0]


class Model:
    """Answers what a flush asks the plugin: each time the next of `replies`."""

    def __init__(self, *replies):
        self.replies, self.asked = [*replies], []

    def __call__(self, asked):
        self.asked.append(asked["ask"])
        reply = self.replies.pop(0)
        return {"reply": reply} if isinstance(reply, str) else reply


def test_before_a_compaction_a_model_writes_down_what_should_last(memory):
    model = Model(NOTE)
    assert told(memory, "session.compacting", model, messages=TALK) == {"flush": "saved"}
    (asked,) = model.asked
    assert "User: When does the ferry to Texel leave?\nAssistant: It leaves at seven." in asked
    assert NOTE in note_of_today(memory)


def test_a_conversation_that_is_too_long_is_flushed_in_parts(memory):
    long = [{"id": f"msg_{n}", "role": "user", "text": f"Crane {n} {'stands still ' * 100}"} for n in range(10)]
    model = Model(*["NO_REPLY"] * 20)
    assert told(memory, "session.compacting", model, messages=long, room=1_500) == {"flush": "nothing"}
    assert 1 < len(model.asked) < 20
    assert all(sum(f"Crane {n} " in asked for asked in model.asked) == 1 for n in range(10))


@pytest.mark.parametrize("failed", [{"error": "the service is down"}, {}])
def test_where_the_model_fails_the_conversation_is_kept(failed, memory):
    assert told(memory, "session.compacting", Model(failed), messages=TALK) == {"flush": "kept"}
    assert len(kept(memory)) == 2


def test_what_was_said_before_a_compaction_is_recalled_and_what_is_in_view_is_not(memory):
    told(memory, "session.idle", messages=TALK)
    question = "When does the ferry to Texel leave?"
    assert LOG not in told(memory, "chat.message", text=question)["recalled"]
    told(memory, "session.compacted")
    assert LOG in told(memory, "chat.message", text=question)["recalled"]


def test_a_session_that_is_deleted_leaves_a_snapshot(memory):
    told(memory, "session.idle", messages=TALK)
    assert told(memory, "session.deleted") == {}
    (snapshot,) = memory.sessions.snapshots(SESSION)
    assert [message.content for message in snapshot.messages] == [one["text"] for one in TALK]
    assert LOG in told(memory, "chat.message", sessionID="next", text="When does the ferry to Texel leave?")["recalled"]


@pytest.mark.parametrize(
    ("event", "given"),
    [
        ("session.exploded", {}),
        ("tool", {"tool": "memory_edit", "args": {"text": "x"}}),
        ("session.idle", {"messages": "none"}),
        ("session.deleted", {"sessionID": ""}),
    ],
)
def test_what_is_no_event_is_an_error(event, given, memory):
    with pytest.raises(InvalidInputError, match=r"there is no|the event"):
        told(memory, event, **given)


# --- the settings of the documented plugin
DOCUMENTED = {
    "search": {
        "hybrid": {"enabled": True, "vectorWeight": 0.7, "textWeight": 0.3, "candidateMultiplier": 4},
        "minScore": 0.35,
        "maxResults": 10,
        "mmr": {"enabled": False, "lambda": 0.7},
        "temporalDecay": {"enabled": False, "halfLifeDays": 30},
    },
    "embeddings": {"provider": "auto", "model": None, "batchSize": 100},
    "chunking": {"tokens": 400, "overlap": 80},
    "cache": {"enabled": True, "maxEntries": 10_000},
    "intentDetection": {"enabled": True, "languages": ["en", "nl", "de", "fr", "es"], "confidenceThreshold": 0.7},
    "snapshots": {"enabled": True, "maxMessages": 15},
}


def test_every_setting_of_the_documented_plugin_is_the_presets():
    preset = MemoryConfig.opencode()
    documented = opencode.choose_base(DOCUMENTED).replace(opencode.read_settings(DOCUMENTED))
    assert replace(documented, plugins={}) == preset
    assert read_settings(documented) == IntentConfig()


@pytest.mark.parametrize(
    ("block", "part", "name", "value"),
    [
        ({"search": {"hybrid": {"enabled": False}}}, "search", "vector_weight", 0),
        ({"search": {"mmr": {"enabled": True, "lambda": 0.4}}}, "search", "mmr", 0.4),
        ({"search": {"temporalDecay": {"enabled": True, "halfLifeDays": 9}}}, "search", "half_life_days", 9),
        ({"search": {"maxResults": 3}}, "search", "max_results", 3),
        ({"embeddings": {"provider": "none", "model": "m"}}, "embedding", "model", "m"),
        ({"cache": {"enabled": False}}, "embedding", "max_entries", 0),
        ({"snapshots": {"maxMessages": 3}}, "sessions", "snapshot_messages", 3),
        ({}, "search", "max_results", 6),
    ],
)
def test_a_setting_means_what_the_librarys_own_does(block, part, name, value):
    assert getattr(getattr(MemoryConfig().replace(opencode.read_settings(block)), part), name) == value


@pytest.mark.parametrize("block", [{"serach": {}}, {"search": {"maxresults": 3}}, {"search": 3}, [], None])
def test_a_setting_that_is_unknown_is_named(block):
    with pytest.raises(ConfigError, match="settings of the plugin"):
        opencode.read_settings(block)


WRITTEN_OUT = {"chunking": {"tokens": 300}, "cache": {"maxEntries": 9}, "embeddings": {"provider": "static"}}


IN_NODE = """
const [path, directory, settings] = process.argv.slice(1)
const { default: plugin } = await import(path)
const log = ({ body }) => Promise.resolve(console.log(JSON.stringify(body)))
const client = { app: { log }, session: { get: async () => ({ data: {} }) } }
const hooks = await plugin.server({ client, directory }, JSON.parse(settings))
for (const said of [{ system: [] }, { system: [] }]) {
  await hooks["experimental.chat.system.transform"]({ sessionID: "ses_1" }, said)
  console.log(JSON.stringify(said))
}
await hooks.dispose()
"""
# The library, but for its first process, which ends when it is asked something.
CRASHES_FIRST = """
import pathlib, runpy, sys
if not (mark := pathlib.Path("crashed")).exists():
    mark.touch(), input(), sys.exit(3)
runpy.run_module("openclaw_memory", run_name="__main__")
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="the plugin runs in JavaScript")
def test_the_plugin_logs_what_is_set_and_not_read_and_starts_again_after_a_crash(notes):
    settings = {"command": [sys.executable, "-c", CRASHES_FIRST], "memory": WRITTEN_OUT}
    arguments = [(PLUGIN / "plugin.js").as_uri(), str(notes), json.dumps(settings)]
    command = ["node", "--input-type=module", "-e", IN_NODE, *arguments]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd=notes)
    crashed, nothing, unread, start = (json.loads(line) for line in outcome.stdout.splitlines())
    assert crashed["message"].endswith("ended without an answer: exit code 3")
    assert unread["message"].startswith("embedding.max_entries is set and not read")
    assert {(entry["service"], entry["level"]) for entry in (crashed, unread)} == {("opencode-memory", "warn")}
    assert (nothing["system"], "The harbour is Den Helder." in start["system"][0]) == ([], True)


# --- the command
def ran(event, stdin, *options):
    result = CliRunner().invoke(commands, ["hook", "opencode", event, *options], input=stdin, standalone_mode=False)
    assert result.exception is None
    assert result.return_value == 0
    return result.output


@pytest.mark.parametrize("stdin", ["{", "[]", "{}", "\0", '{"sessionID": "s", "settings": {"cashe": 1}}'])
def test_whatever_comes_in_the_host_goes_on_and_the_log_says_why(stdin, notes):
    assert ran("session.deleted", stdin, "--workspace", str(notes)) == ""
    assert "opencode: " in SafeFolder.locate_data(notes).read("hooks.log").decode()


def started(notes, *arguments):
    command = [sys.executable, "-m", "openclaw_memory", "hook", "opencode", *arguments, "--workspace", str(notes)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def exchanged(process, given):
    process.stdin.write(f"{json.dumps(given)}\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def test_a_process_of_one_event_asks_the_plugin_in_between_and_answers_it(notes):
    with started(notes, "session.compacting") as process:
        given = {"sessionID": SESSION, "messages": TALK, "settings": DOCUMENTED}
        assert "the ferry to Texel" in exchanged(process, given)["ask"]
        assert exchanged(process, {"reply": NOTE}) == {"flush": "saved"}
    assert process.returncode == 0


def test_a_process_that_stays_answers_a_message_while_a_flush_waits_for_its_model(notes):
    settings = notes / "settings.toml"
    settings.touch()
    with started(notes, "--config", str(settings)) as process:
        assert "notices" in exchanged(process, {"id": 0, "event": "session.created", "sessionID": SESSION})
        flush = {"id": 1, "event": "session.compacting", "sessionID": SESSION, "messages": TALK}
        asked = exchanged(process, flush)
        assert (asked["id"], "the ferry to Texel" in asked["ask"]) == (1, True)
        message = {"event": "chat.message", "sessionID": "another", "text": "Which harbour is it?"}
        intent = exchanged(process, {"id": 2, **message})
        assert "Which harbour is it?" in intent["ask"]
        answered = exchanged(process, {"question": intent["question"], "error": "the service is down"})
        assert answered["question"] > intent["question"]  # which is the second try
        answered = exchanged(process, {"question": answered["question"], "reply": "nonsense"})
        assert (answered["id"], "Den Helder" in answered["recalled"]) == (2, True)
        assert answered["notices"] == ["nothing is suggested for a message: " + NONSENSE]
        settings.write_text("[defaults.compaction]\nkeep_recent_tokens = 7\n")
        started_anew = exchanged(process, {"id": 3, "event": "session.created", "sessionID": "another"})
        assert started_anew["notices"] == [
            "compaction.keep_recent_tokens is set and not read: this program does not use it"
        ]
        assert exchanged(process, {"question": asked["question"], "reply": NOTE}) == {"flush": "saved", "id": 1}
        assert exchanged(process, {"id": 4, "event": "none"}) == {"id": 4}
    assert process.returncode == 0


# --- the plugin's files
def test_the_schemas_and_the_skill_are_the_librarys_words():
    words = runpy.run_path(str(ROOT / "scripts" / "opencode_words.py"))["texts"]()
    assert {name: (PLUGIN / name).read_text(encoding="utf-8") for name in words} == words
