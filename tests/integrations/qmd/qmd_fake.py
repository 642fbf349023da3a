"""Answers as QMD 2.8.3 did when `qmd_recording.py` listened: run as its command, in its place.

The first argument is a folder: each call is a line of `calls` in it, and a file there that is named like a command, or
`http`, says what goes wrong: `hang`, `crash`, `damaged`, `old`, `silent`, or words that are written before it fails.
"""

import json
import os
import re
import sys
import time
from pathlib import Path

RECORDED = json.loads(Path(__file__).with_name("qmd_recorded.json").read_text(encoding="utf-8"))
MISS = RECORDED["commands"]["search --json -n 16 -c memory -- submarine"]


def fault(folder: Path, name: str) -> str:
    file = folder / name
    return file.read_text(encoding="utf-8") if file.exists() else ""


def wait_for_ever(folder: Path) -> None:
    (folder / "hanging").write_text(str(os.getpid()), encoding="utf-8")
    while True:
        time.sleep(60)


def say(one: dict, folder: Path) -> None:
    sys.stdout.write(one["out"].replace("{folder}", str(folder)))
    sys.stderr.write(one["error"].replace("{folder}", str(folder)))
    sys.exit(one["code"])


def serve(folder: Path, port: int) -> None:
    from http.server import BaseHTTPRequestHandler, HTTPServer  # here: each of the other calls is quicker without it

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if fault(folder, "http") == "hang":
                wait_for_ever(folder)
            one = RECORDED["http"].get(
                re.sub(r'"limit": \d+', '"limit": 16', asked), {"status": 200, "text": '{"results":[]}'}
            )
            if words := fault(folder, "http"):
                one = {"status": 500, "text": words}
            self.send_response(one["status"])
            self.end_headers()
            self.wfile.write(one["text"].encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", port), Handler)
    print(RECORDED["listening"].replace("48181", str(port)), file=sys.stderr, flush=True)
    server.serve_forever()


def main() -> None:
    folder, (index, name, *arguments) = Path(sys.argv[1]), sys.argv[2:]
    assert (index, name) == ("--index", "openclaw-memory"), "else a configuration of any folder above counts"
    assert not sys.stdin.read()
    with open(folder / "calls", "a", encoding="utf-8") as calls:
        calls.write(" ".join(arguments) + "\n")
    place = Path(os.environ["INDEX_PATH"])
    wrong = fault(folder, arguments[0].lstrip("-"))
    if wrong == "hang":
        wait_for_ever(folder)
    if wrong == "crash":
        os.kill(os.getpid(), 11)
    if wrong == "old":
        say({"out": "qmd 0.9.0\n", "error": "", "code": 0}, folder)
    if wrong:
        say({"out": "", "error": wrong, "code": 1}, folder)
    if arguments[0] == "mcp":
        serve(folder, int(arguments[arguments.index("--port") + 1]))
    if arguments[0] == "update":
        if place.exists() and b"no database" in place.read_bytes():
            say(RECORDED["damaged"], place.parent)
        place.touch()
    if arguments[0] == "embed":
        sys.exit(0)
    say(RECORDED["commands"].get(re.sub(r"-n \d+", "-n 16", " ".join(arguments)), MISS), place.parent)


main()
