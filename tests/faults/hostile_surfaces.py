"""The ways by which a hostile workspace is met, and what must hold on each: a new one is one line in `SURFACES`.

A surface is a function of a memory that yields what it shows, each with its reader: `program`, `terminal`, `start` (of a
session, where an agent reads its rules), `group` (a chat of several people), `model`, or one of the two texts that cite by
lines of their own, `recall` and `nodes`. What only calls another surface, as adapters do, is none: see `test_doors.py`.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import logging
import multiprocessing
import os
import re
import resource
import stat
import sys
import time
import traceback
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cpu_time import least_seconds
from faults import hostile_workspace as hostile
from langchain_openclaw_memory import OpenClawStore
from llama_index.core.schema import MetadataMode
from llama_index_openclaw_memory import OpenClawRetriever

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.cli import main as command
from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.tools import memory_tools, recall
from openclaw_memory.types import Document

Shown = Iterator[tuple[str, str]]
GROUP = "agent:main:telegram:group:1"
READ = ("MEMORY.md", "AGENTS.md", "../private/secret.md")

# What one surface may take: 10 MB of anything are to be read in 15 s and 500 MB, and it searches and reads them again.
CPU_SECONDS = {1: 15, 10: 60}
DATA_BYTES = 500 << 20
HANGS_AFTER = 180  # seconds, of all surfaces together, on a machine that does other things too


# --- the surfaces
def sync(memory: Memory) -> Shown:
    for force in (False, True, False):
        report = memory.sync(force=force)
        yield "terminal", repr(report)
        yield "terminal", report._repr_html_()


def search(memory: Memory) -> Shown:
    for question, source in product(hostile.QUESTIONS, (None, "memory", "sessions")):
        found = memory.search(
            question, filter={"source": source}, max_results=50, min_score=0.0, options={"explain": True}
        )
        yield "terminal", repr(found)
        yield "terminal", found._repr_html_()
        yield "terminal", str(found.explain())
        for hit in found:
            yield "program", hit.snippet
            yield "program", hit.citation
            yield from cited(memory, hit)


def cited(memory: Memory, hit: Any) -> Shown:
    """A citation is one line, and opens the lines that it names."""
    assert not LINE_ENDS.search(hit.citation), f"the citation {hit.citation!a} is no line"
    excerpt = memory.get(hit.citation)
    yield "program", excerpt.text
    if hit.source == "memory" and not excerpt.cut and excerpt.next_start is None:
        lines = [line for line in hit.snippet.split("\n") if line.strip() and "…" not in line and "***" not in line]
        lost = [line for line in lines if line not in excerpt.text]
        assert not lost, f"{hit.citation!a} does not hold {lost[0][:80]!a}, which it is cited for"


def read(memory: Memory) -> Shown:
    root = memory.workspace.root
    there = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.suffix in {".md", ".jsonl"})[:80]
    for path in (*there, *READ, "memory/../../private/secret.md", ".memory/config.toml"):
        yield from each(lambda path=path: [("program", memory.get(path).text)])
    yield "start", repr(memory.notes.bootstrap())


def each(work: Callable[[], Any]) -> Shown:
    """What a call shows, or the words of its refusal."""
    try:
        yield from work()
    except OpenClawMemoryError as error:
        yield "terminal", str(error)


def write(memory: Memory) -> Shown:
    for path in ("memory/honest.md", "MEMORY.md", "AGENTS.md", "memory/a.md", "USER.md"):
        yield from each(lambda path=path: changed(memory, path))
    for day in ("2026-01-06", None):
        yield from each(lambda day=day: [("program", memory.append("A line for later.", date=day).text)])
    yield from each(lambda: [("program", memory.notes.promote("memory/honest.md", 1, 1).text)])


def changed(memory: Memory, path: str) -> Shown:
    whole = memory.get(path)
    yield "program", whole.text
    if path != "AGENTS.md":
        written = memory.edit(path, whole.start_line, whole.start_line, "# Household", expected=whole)
        yield "program", written.text
        again = memory.append("A line to be gone.", date="2026-01-07")
        memory.delete(again.path, again.start_line, again.end_line, expected=again)


def status(memory: Memory) -> Shown:
    for deep in (False, True):
        state = memory.status(deep=deep)
        yield "terminal", repr(state)
        yield "terminal", state._repr_html_()
        yield "said", " ".join([*state.notices, *(file.reason for file in state.skipped)])
    yield "terminal", repr(memory)


def recalled(memory: Memory) -> Shown:
    for question, (reader, key) in product(hostile.QUESTIONS, (("recall", None), ("group", GROUP))):
        yield reader, recall(memory, question, max_results=50, min_score=0.0, max_chars=50_000, session_key=key)


def tools(memory: Memory) -> Shown:
    for key in (None, GROUP):
        include = "search get append edit forget promote".split()
        named = {tool.name: tool for tool in memory_tools(memory, session_key=key, include=include)}
        reader = "model" if key is None else "group"
        for question in hostile.QUESTIONS:
            answer = named["memory_search"].run({"query": question, "maxResults": 50, "minScore": 0})
            yield reader, answer.text
            for row in answer.data.get("results", []):
                first = int(row["lines"].split("-")[0])
                yield reader, named["memory_get"]({"path": row["path"], "from": first, "lines": 5})
        for path in (*READ, "sessions/talk.jsonl", "memory/a.md", "memory/honest.md"):
            got = named["memory_get"].run({"path": path})
            yield reader, got.text
            if got.data.get("hash"):
                lines = {"path": path, "from": 1, "lines": got.data["lines"], "hash": got.data["hash"]}
                yield reader, named["memory_promote"](lines)
                yield reader, named["memory_edit"]({**lines, "text": f"# Household\n\n{hostile.TRUTH}"})
                yield reader, named["memory_forget"]({**lines, "hash": "0" * 12})
        yield reader, named["memory_append"]({"text": "A line for later."})


def documents(memory: Memory) -> Shown:
    yield from each(lambda: [("program", str(memory.documents.add([Document("ours", hostile.TRUTH)])))])
    for document in memory.documents.iterate():
        yield "program", f"{document.id} {document.text}"
    vector = memory.embedder.embed_query(hostile.QUESTIONS[1])
    for found in (memory.documents.search(hostile.QUESTIONS[1], 50), memory.documents.search_vector(vector, 50)):
        yield "program", str([document.text for document, _ in found])
    yield "program", str(memory.documents.get(["ours", "same", "../../private/secret"]))
    yield "terminal", str(memory.documents.list_problems(look=True))
    memory.documents.delete(["ours"])


def talk(memory: Memory) -> Shown:
    yield from each(lambda: [("program", str(memory.sessions.log("hostile").append("user", hostile.TRUTH)))])
    yield from each(lambda: flushed(memory))
    memory.sync()


def flushed(memory: Memory) -> Shown:
    flush = memory.sessions.flush("main", window=200_000)
    yield "program", str(flush.begin(190_000))
    yield "terminal", str(flush.state)
    flush.record_compaction(1000)


def watch(memory: Memory) -> Shown:
    watcher = memory.watch()
    ends = time.monotonic() + 5
    while watcher.syncs == 0 and time.monotonic() < ends:
        time.sleep(0.01)
    yield "terminal", repr(watcher)
    yield "terminal", repr(memory.status().watcher)


def with_all_markdown(memory: Memory) -> Shown:
    config = MemoryConfig().replace({"files": {"extra_paths": (".",)}})
    with Memory.open(memory.workspace.root, embedder=HashingEmbedder(), config=config) as other:
        yield "terminal", repr(other.sync())
        yield "terminal", repr(other.search(hostile.QUESTIONS[1], max_results=50, min_score=0.0))


def commands(memory: Memory) -> Shown:
    place = ["--workspace", str(memory.workspace.root)]
    for line in (
        ["index"], ["index", "--force"], ["status"], ["status", "--deep"], ["doctor"], ["search", hostile.QUESTIONS[1], "-n", "50", "--min-score", "0"],
        ["search", hostile.QUESTIONS[1], "--explain"], ["search", hostile.QUESTIONS[1], "--json"], ["show", "memory/honest.md"], ["show", "../private/secret.md"], ["show", "memory/a.md"],
        ["add", "A line for later."], ["status", "--json"], ["doctor", "--json"],
        ["init"], ["watch", "--for", "0.01"],
    ):  # fmt: skip
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            try:
                command([line[0], *place, *line[1:]])
            except SystemExit as leaving:
                code = leaving.code
        shown = out.getvalue()
        yield "terminal", shown
        assert code in {0, 1, 2}, f"openclaw-memory {line} ends with {code!r}: {shown[-300:]!a}"
        assert "Traceback" not in shown, f"openclaw-memory {line}: {shown[-300:]!a}"
        if line[0] in {"index", "status", "doctor"}:
            yield "said", shown


def graph_store(memory: Memory) -> Shown:
    store = OpenClawStore(memory)
    store.put(("notes",), "ours", {"text": hostile.TRUTH})
    yield "program", str(store.search((), query=hostile.QUESTIONS[1], limit=50))
    yield "program", str(store.list_namespaces())
    store.delete(("notes",), "ours")


def nodes(memory: Memory) -> Shown:
    for node in OpenClawRetriever(memory, similarity_top_k=50, min_score=0.0).retrieve(hostile.QUESTIONS[1]):
        yield "nodes", node.get_content(MetadataMode.LLM)


def honest(memory: Memory) -> Shown:
    """What an honest note says is found, whatever lies beside it, or the question is refused in words."""
    hits = memory.search("Is the kettle in the shed?", max_results=100, min_score=0.0)
    yield "found", " ".join(hit.snippet for hit in hits)


# A later feature is run against every attack by a line here.
SURFACES: tuple[Callable[[Memory], Shown], ...] = (
    sync, search, read, status, recalled, tools, write, documents, talk, watch, with_all_markdown, commands, graph_store,
    nodes, honest,
)  # fmt: skip


# --- what must hold
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")
FENCE = re.compile(
    r'<recalled-memory id="([0-9a-f]{16})" from="([^"<>\n]*)">\n(.*?)\n</recalled-memory id="\1">', re.DOTALL
)
CLAIM = re.compile(
    rf"#l{hostile.FORGED_LINE}(-l\d+)?( [0-9a-f]{{8,16}})?[\]*]*$"
)  # a path that holds it somewhere is a true one
CITES = re.compile(r"#l\d+(-l\d+)?( [0-9a-f]{8,16})?[\]*]*$")
LINE_ENDS = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def wrong(reader: str, text: str) -> Iterator[str]:
    """What is wrong with a text that a reader is shown."""
    if reader in {"found", "said"}:
        return
    plain = folded(text)
    words = {**hostile.NEVER_SHOWN, **({hostile.PRIVATE: "what is private, to a group"} if reader == "group" else {})}
    for word, what in words.items():
        if word in plain and not (reader == "start" and word == hostile.RULES):
            yield f"shows {what}: {around(plain, word)}"
    if reader in {"terminal", "start"} and (control := CONTROLS.search(text)):
        yield f"shows the control character {control[0]!a}: {around(text, control[0])}"
    yield from forged(reader, text)


def forged(reader: str, text: str) -> Iterator[str]:
    """What a model takes for a fence or a citation of ours, and is not."""
    if reader == "nodes":
        first, *later = map(folded, LINE_ENDS.split(text))
        for line in later:
            if (
                first.startswith("citation:")
                and line.strip().startswith("citation:")
                and str(hostile.FORGED_LINE) in line
            ):
                yield f"a node forges a citation: {line!a}"
    if reader == "model" or (reader == "group" and text.startswith("{")):
        for part in strings(json.loads(text)):
            yield from unfenced(part)
    elif reader in {"recall", "group", "nodes"}:
        yield from unfenced(text)
        yield from uncited(text)


def folded(text: str) -> str:
    """A text as a lenient reader sees it: without invisible characters, in small letters."""
    text = unicodedata.normalize("NFKC", text) if not text.isascii() else text
    return "".join(c for c in text if c.isascii() or unicodedata.category(c) not in {"Cf", "Mn", "Me"}).casefold()


def around(text: str, word: str) -> str:
    at = text.find(word)
    return ascii(text[max(0, at - 50) : at + 70])


def strings(value: Any) -> Iterator[str]:
    """The strings of a tool's answer, but for the names of files, which are what they are."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name not in {"path", "citation"}:
                yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def unfenced(text: str) -> Iterator[str]:
    names = re.sub("[\u2010-\u2015\u2212]", "-", folded(text)).count("recalled-memory")
    fences = FENCE.findall(text)
    if names != 2 * len(fences):
        yield f"a fence is forged: {around(folded(text), 'recalled-memory')}"


def uncited(text: str) -> Iterator[str]:
    """A line that a reader takes for a citation, where true ones are such lines too."""
    for mark, _, body in FENCE.findall(text):
        lines = [folded(line).strip(" \t>-*#【&0123456789") for line in LINE_ENDS.split(body)]
        lines = [line for line in lines if line.startswith("[") and CITES.search(line)]
        true = [line for line in lines if not CLAIM.search(line)]
        short = mark[:8]  # so many digits of it are in a citation, and no note can know them
        marked = all(short in line for line in true)
        for line in lines:
            if true and CLAIM.search(line) and not (marked and short not in line):
                yield f"a citation is forged: {line!a}"


def seen_of(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Every file below `folder`, with all that a write would change."""
    found: dict[str, tuple[Any, ...]] = {}
    for base, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(base, name)
            about = os.lstat(path)
            content: Any = os.readlink(path) if stat.S_ISLNK(about.st_mode) else None
            if stat.S_ISREG(about.st_mode) and about.st_size < 64 << 20:
                content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
            moment = None if stat.S_ISDIR(about.st_mode) else about.st_mtime_ns
            found[os.fsdecode(path)] = (about.st_mode, about.st_size if moment else 0, moment, content)
    return found


def differences(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            verb = "made" if path not in before else "removed" if path not in after else "changed"
            yield f"{verb} outside: {os.path.basename(os.path.dirname(path))}/{os.path.basename(path)!a}"


def leaked_into(folder: Path, before: dict[str, Any]) -> Iterator[str]:
    for path, about in seen_of(folder).items():
        if before.get(path) != about and stat.S_ISREG(about[0]) and about[1] < 64 << 20:
            content = Path(path).read_bytes()
            if hostile.OUTSIDE.encode() in content:
                yield f"wrote content from outside into {os.path.relpath(path, folder)!a}"


class Meeting:
    """One workspace that surfaces meet, and what was seen of it so far."""

    def __init__(self, names: tuple[str, ...], place: hostile.Place) -> None:
        self.names, self.place = names, place
        self.problems: dict[str, list[str]] = {}  # each with the surfaces that have it
        self.said: list[str] = []
        self.found: list[str] = []
        self.logged: list[str] = []
        self.private, self.own = seen_of(place.outside), seen_of(place.root)

    def meet(self, surface: Callable[[Memory], Shown]) -> None:
        problems: list[str] = []
        most = CPU_SECONDS[self.place.scale]
        took = least_seconds(lambda: problems.extend(self._shown(surface)), most, time.process_time, tries=2)
        before, self.private = self.private, seen_of(self.place.outside)
        problems += [*differences(before, self.private), *([f"takes {took:.0f} s"] if took > most else [])]
        for text in self.logged:
            problems += [f"a log {problem}" for problem in wrong("terminal", text)]
        self.logged.clear()
        for problem in dict.fromkeys(problems):
            self.problems.setdefault(problem, []).append(surface.__name__)

    def _shown(self, surface: Callable[[Memory], Shown]) -> Iterator[str]:
        try:
            with Memory.open(self.place.root, embedder=HashingEmbedder()) as memory:
                for reader, text in surface(memory):
                    self.said += [text] if reader == "said" else []
                    self.found += [text] if reader == "found" else []
                    yield from wrong(reader, text)
        except OpenClawMemoryError as error:
            self.said.append(str(error))
            self.found += [hostile.TRUTH] if surface is honest else []  # refused in words, which is an answer too
            yield from wrong("terminal", str(error))
        except AssertionError as error:
            yield str(error)
        except BaseException as error:  # noqa: BLE001 - that is what is looked for
            at = traceback.extract_tb(error.__traceback__)[-1]
            yield f"{type(error).__name__}: {str(error)[:120]!a} at {Path(at.filename).name}:{at.lineno}"

    def all_problems(self) -> Iterator[str]:
        yield from (f"{problem} ({', '.join(surfaces)})" for problem, surfaces in self.problems.items())
        yield from leaked_into(self.place.root, self.own)
        yield from leaked_into(self.place.home, {})
        attacks = [hostile.ATTACKS[name] for name in self.names]
        if len(attacks) == 1 and not re.search(attacks[0].said, " ".join(self.said), re.IGNORECASE):
            yield f"neither report nor status nor doctor says {attacks[0].said!r}"
        if all(attack.answers for attack in attacks) and hostile.TRUTH.rstrip(".") not in " ".join(self.found):
            yield "an honest note is not found"


def meet(names: tuple[str, ...], base: str, seed: int, scale: int, answer: Any) -> None:
    """Plant attacks and let every surface meet them: run in a process of its own, which may hang or die."""
    place = hostile.prepare(Path(base), seed, scale)
    hostile.plant(names, place)
    meeting, handler = Meeting(names, place), logging.Handler()
    handler.emit = lambda record: meeting.logged.append(record.getMessage())
    logging.getLogger().addHandler(handler)
    warnings.simplefilter("ignore")
    [data] = re.findall(r"^VmData:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    limit = (int(data) << 10) + DATA_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    with hostile.at_home(place.home):
        for surface in SURFACES:
            answer.send(surface.__name__)
            meeting.meet(surface)
    answer.send([*meeting.all_problems()])


def problems_of(names: tuple[str, ...], base: Path, *, seed: int = 0, scale: int = 1) -> list[str]:
    """What goes wrong where these attacks are planted in `base`."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["faults.hostile_surfaces"])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=meet, args=(names, str(base), seed, scale, theirs))
    # The server of processes, which the first one starts, is to find what it loads: Python 3.11 keeps the path from it.
    with patch.dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))):
        process.start()
    theirs.close()
    surface, ends = "planting", time.monotonic() + HANGS_AFTER * min(scale, 5)
    try:
        while ours.poll(max(0.0, ends - time.monotonic())):
            if isinstance(answer := ours.recv(), list):
                return answer
            surface = answer
        return [f"hangs ({surface})"]
    except EOFError:
        process.join()
        return [f"the process ended with {process.exitcode} ({surface})"]
    finally:
        process.kill()
        process.join()
        ours.close()
