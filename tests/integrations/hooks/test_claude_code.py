"""Claude Code's hooks, with what version 2.1.330 really wrote to stdin and to its transcript."""

import io
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner
from openclaw_memory_hooks import claude_code
from openclaw_memory_hooks.background import ask
from watching import eventually

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.cli import find_workspace
from openclaw_memory.cli.commands import commands
from openclaw_memory.config.sections import SessionsConfig
from openclaw_memory.errors import InvalidInputError
from openclaw_memory.testing import RecordingEmbedder
from openclaw_memory.workspace import SafeFolder

HERE = Path(__file__).parent
SESSION = "11111111-2222-4333-8444-555555555555"
LOG = f"sessions/{SESSION}.jsonl"
RECORDED = [json.loads(line) for line in (HERE / "claude_code_events.jsonl").read_text().splitlines()]
TRANSCRIPT = (HERE / "claude_code_session.jsonl").read_text().splitlines(keepends=True)
COMPACTED_AT = next(at for at, line in enumerate(TRANSCRIPT) if "compact_boundary" in line)


class Host:
    """Claude Code as far as a hook sees it: a transcript that grows, and events that name it."""

    def __init__(self, root: Path) -> None:
        self.transcript = root / "home" / "talk.jsonl"
        self.transcript.parent.mkdir()

    def wrote(self, lines: list[str]) -> None:
        with self.transcript.open("a") as file:
            file.writelines(lines)

    def event(self, name: str, **changes: object) -> dict[str, object]:
        recorded = next(one for one in RECORDED if one["hook_event_name"] == name)
        return {**recorded, "transcript_path": str(self.transcript), **changes}


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def told(event, memory):
    """What an event adds to the host's context; "" for nothing."""
    answer = claude_code.answer(event, memory)
    if not answer:
        return ""
    said = json.loads(answer)["hookSpecificOutput"]
    assert said["hookEventName"] == event["hook_event_name"]
    return said["additionalContext"]


def kept(memory):
    return [line for line in memory.get(LOG, lines=100).text.splitlines() if line]


ASKED = "User: When does the ferry to Texel leave? password=***"
SAID = "Assistant: Understood: the ferry leaves at seven."
FIRST = [ASKED, SAID, "User: What about Vlieland?", SAID]


def test_a_session_starts_with_the_long_term_memory(host, memory):
    said = told(host.event("SessionStart"), memory)
    assert "The harbour is Den Helder." in said
    assert f"--workspace '{memory.workspace.root}'" in said
    assert f"today's note, memory_append or {memory.workspace.root / 'memory'}{os.sep}20" in said
    assert "What lasts (preferences, decisions, who is who) goes into MEMORY.md." in said
    assert "The harbour is Den Helder." in told(host.event("SessionStart", source="clear"), memory)
    assert told(host.event("SessionStart", source="resume"), memory) == ""  # it has been told


def test_a_session_that_starts_while_another_one_syncs_is_told_the_same(host, memory):
    said = []
    memory.sync(progress=lambda _: said.append(told(host.event("SessionStart"), memory)))
    assert "The harbour is Den Helder." in said[0]


def test_what_the_memory_knows_is_recalled_for_a_prompt_within_bounds(host, memory):
    for number in range(40):
        memory.append(f"The harbour has crane number {number}, which {'often ' * 40}stands still.")
    told(host.event("SessionStart"), memory)
    said = told(host.event("UserPromptSubmit", prompt="Which harbour is it?"), memory)
    assert "harbour" in said
    assert "<recalled-memory" in said
    assert len(said) < claude_code.RECALLED_CHARS + 1_000


@pytest.mark.parametrize(
    ("prompt", "question"),
    [
        ("Onthoud dat ik geen noten eet.", "Zal ik dit onthouden over: noten"),
        ("Remember that I eat no nuts.", "Should I remember this about: eat, nuts?"),
        ("Merk dir, dass ich keine Nüsse esse.", "Soll ich mir das merken zu: nüsse"),
        ("Retiens que je ne mange pas de noix.", "Dois-je retenir ceci au sujet de : mange, noix ?"),
        ("Recuerda que no como nueces.", "¿Quieres que recuerde esto sobre: nueces?"),
        ("请记住，我不吃坚果。", "要我记住这件事吗：我不吃坚果？"),
        ("Vergeet mijn oude adres.", "Zal ik deze regels vergeten over: "),
    ],
)
def test_a_prompt_that_wants_something_remembered_or_forgotten_has_claude_ask(host, memory, prompt, question):
    said = told(host.event("UserPromptSubmit", prompt=prompt), memory)
    assert question in said
    assert "If you agree" in said or "before the user has seen" in said


@pytest.mark.parametrize("prompt", ["Fix the login bug in auth.py", "What did I say about the ferry?", "Thanks!"])
def test_a_prompt_that_wants_nothing_kept_brings_no_question(host, memory, prompt):
    assert "Question:" not in told(host.event("UserPromptSubmit", prompt=prompt), memory)


@pytest.mark.parametrize("prompt", ["/compact", "!ls harbour"])
def test_nothing_is_recalled_for_commands(host, notes, prompt):
    ran(json.dumps(host.event("SessionStart")), "--workspace", str(notes))
    assert ran(json.dumps(host.event("UserPromptSubmit", prompt=prompt)), "--workspace", str(notes)) == ""


def test_each_turn_is_kept_once_with_its_secrets_masked(host, memory):
    host.wrote(TRANSCRIPT[:4])
    assert told(host.event("Stop"), memory) == ""
    host.wrote(TRANSCRIPT[4:COMPACTED_AT])
    for name in ("Stop", "Stop", "PreCompact"):
        assert told(host.event(name), memory) == ""
    assert kept(memory) == FIRST
    assert "hunter2secretvalue" not in (memory.workspace.root / LOG).read_text()
    SafeFolder.locate_data(memory.workspace.root).replace("claude-code.json", b"{damaged")
    told(host.event("Stop"), memory)
    assert kept(memory) == FIRST


def test_what_is_said_again_in_a_later_turn_is_kept_again(host, memory):
    for line in TRANSCRIPT[:COMPACTED_AT]:
        host.wrote([line])
        told(host.event("Stop"), memory)
    assert kept(memory) == FIRST


def test_after_a_compaction_the_model_is_asked_to_write_up_what_was_kept(host, memory):
    host.wrote(TRANSCRIPT[:COMPACTED_AT])
    told(host.event("PreCompact"), memory)
    said = told(host.event("SessionStart", source="compact"), memory)
    assert f"{LOG}, in {memory.workspace.root}" in said
    assert f"{memory.workspace.root / 'memory'}{os.sep}20" in said
    assert f"{ASKED}\n{SAID}" in said
    assert "hunter2secretvalue" not in said


def test_what_was_said_before_the_compaction_is_recalled_and_what_is_in_view_is_not(host, memory):
    host.wrote(TRANSCRIPT[:COMPACTED_AT])
    told(host.event("Stop"), memory)
    prompt = host.event("UserPromptSubmit", prompt="When does the ferry to Texel leave?")
    assert LOG not in told(prompt, memory)
    told(host.event("PreCompact"), memory)
    memory.sync()
    assert LOG in told(prompt, memory)


def test_a_session_that_has_ended_is_remembered_in_the_next(host, memory):
    host.wrote(TRANSCRIPT)
    assert told(host.event("SessionEnd"), memory) == ""
    (snapshot,) = memory.sessions.snapshots(SESSION)
    assert snapshot.messages[-2].content == "And after?"
    told(host.event("SessionStart", session_id="next"), memory)
    assert LOG in told(host.event("UserPromptSubmit", session_id="next", prompt="What about Vlieland?"), memory)


def test_a_transcript_that_is_indexed_where_it_is_is_not_written_to(host, notes):
    host.wrote(TRANSCRIPT)
    own = host.transcript.rename(host.transcript.with_name(f"{SESSION}.jsonl"))
    host.transcript = own
    before = own.read_bytes()
    config = MemoryConfig(sessions=SessionsConfig(folder=str(own.parent)))
    with Memory.open(notes, embedder=RecordingEmbedder(), config=config) as memory:
        for name in ("Stop", "PreCompact", "SessionEnd"):
            told(host.event(name), memory)
        memory.sync()
        assert own.read_bytes() == before
        assert memory.search("Vlieland", filter={"source": "sessions"})[0].path == LOG


@pytest.mark.parametrize("event", [{}, {"hook_event_name": 7}, {"hook_event_name": "Stop"}])
def test_what_is_no_event_is_an_error(memory, event):
    with pytest.raises(InvalidInputError, match="no input of a hook"):
        claude_code.answer(event, memory)


# --- the command
def ran(stdin, *options):
    result = CliRunner().invoke(commands, ["hook", "claude-code", *options], input=stdin, standalone_mode=False)
    assert result.exception is None
    assert result.return_value == 0
    return result.output


@pytest.mark.parametrize("stdin", ["{", "[]", '{"hook_event_name": "Stop"}', "\0"])
def test_whatever_comes_in_the_host_goes_on_and_the_log_says_why(notes, stdin):
    assert ran(stdin, "--workspace", str(notes)) == ""
    assert "claude-code: " in SafeFolder.locate_data(notes).read("hooks.log").decode()


def test_a_workspace_that_is_not_there_and_an_option_that_is_unknown_stop_no_host(tmp_path, host):
    said = ran(json.dumps(host.event("SessionStart")), "--workspace", str(tmp_path / "gone"), "--newer-option")
    assert "claude-code: WorkspaceError" in said  # on stderr: there is no folder for the log


def test_a_hook_works_on_no_workspace_that_is_not_where_it_runs(run, notes, monkeypatch, tmp_path):
    file = tmp_path / "config.toml"
    file.write_text(f'workspace = "{notes}"\n', encoding="utf-8")
    monkeypatch.setattr(find_workspace, "locate_settings", lambda: file)
    monkeypatch.setenv("OPENCLAW_MEMORY_WORKSPACE", str(notes))
    (notes / "project").mkdir()
    for folder in (tmp_path, notes / "project"):
        monkeypatch.chdir(folder)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"hook_event_name": "SessionStart"}')))
        assert run("hook", "claude-code") == (0, "", "")
    assert not [*(notes / "project").iterdir()]


# --- the process in the background
class Background:
    """Hooks of the thin client, in a data folder of their own."""

    def __init__(self, notes: Path, home: Path) -> None:
        self.notes, self.home, self.packages = str(notes), home, home / "packages"
        self.packages.mkdir()
        paths = os.pathsep.join([*sys.path, str(self.packages)])
        self.environment = {**os.environ, "OPENCLAW_MEMORY_HOME": str(home), "PYTHONPATH": paths}

    def hook(self, event: dict[str, object], *words: str) -> str:
        words = ("-m", *(words or ["openclaw_memory_hooks.background"]), "claude-code", "-w", self.notes)
        return self.run(words, input=json.dumps(event))

    def run(self, words: Iterable[str], **options: str) -> str:
        options = {"env": self.environment, "stdout": subprocess.PIPE, "text": True, "check": True, **options}
        return re.sub(r"\b[0-9a-f]{8,16}\b", "", subprocess.run([sys.executable, *words], **options).stdout)  # noqa: PLW1510

    def sockets(self) -> list[Path]:
        return [file for file in self.home.glob("hooks/*") if not file.suffix]

    def ask(self, event: dict[str, object]) -> str | None:
        """The answer of the process, or None: the client would answer by itself."""
        answers = (ask(str(file), self.notes, json.dumps(event).encode()) for file in self.sockets())
        answer = next(answers, None)
        return None if answer is None else re.sub(r"\b[0-9a-f]{8,16}\b", "", answer.decode())


@pytest.fixture
def background(notes, monkeypatch):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    with tempfile.TemporaryDirectory() as home:  # the path of a socket is short
        background = Background(notes, Path(home))
        yield background
        (background.packages / "updated at last").touch()
        background.ask({})
        eventually(lambda: not background.sockets())


def test_the_process_that_a_hook_starts_answers_the_next_ones_as_a_hook_alone_does(background, host):
    assert "Den Helder" in background.hook(host.event("SessionStart"))
    prompt = host.event("UserPromptSubmit", prompt="Remember which harbour it is.")
    alone = background.hook(prompt, "openclaw_memory", "hook")
    eventually(background.sockets)
    modes = [file.stat().st_mode & 0o777 for file in (background.home / "hooks", *background.sockets())]
    assert modes == [0o700, 0o600]
    with ThreadPoolExecutor(4) as pool:  # as several conversations at once
        assert {alone, background.hook(prompt), *pool.map(background.ask, [prompt] * 8)} == {alone}
    settings = Path(os.environ["XDG_CONFIG_HOME"], "openclaw-memory", "config.toml")
    settings.parent.mkdir(exist_ok=True)
    settings.write_text("[defaults.plugins.intent]\nenabled = false\n")
    changed = background.ask(prompt)
    settings.unlink()
    assert ["Question:" in answer for answer in (alone, changed, background.ask(prompt))] == [True, False, True]
    assert background.ask({"hook_event_name": 7}) == ""
    assert "InvalidInputError" in next(background.home.rglob("hooks.log")).read_text()


def test_a_process_that_was_killed_or_is_of_another_version_leaves_the_hook_to_answer(background, host):
    start = host.event("SessionStart")
    background.hook(start)
    eventually(background.sockets)
    (file,) = background.sockets()
    (background.packages / "updated").touch()
    assert background.ask(start) is None
    eventually(lambda: not file.exists())
    with socket.socket(socket.AF_UNIX) as stale:  # as a killed process leaves it
        stale.bind(str(file))
    assert "Den Helder" in background.hook(start)
    eventually(lambda: background.ask(start))


def test_hooks_at_the_same_moment_start_one_process_which_ends_when_nothing_comes(background, host):
    with ThreadPoolExecutor(4) as pool:
        assert len({*pool.map(background.hook, [host.event("SessionStart")] * 4)}) == 1
    eventually(background.sockets)
    (file,) = background.sockets()
    assert subprocess.run(["pgrep", "-fc", str(file)], stdout=subprocess.PIPE, text=True).stdout == "1\n"  # noqa: PLW1510
    code = "import sys; from openclaw_memory_hooks.background import serve; serve(sys.argv[1], 0.01)"
    assert background.run(["-c", code, str(other := file.with_name("1"))]) == ""
    assert not other.exists()
