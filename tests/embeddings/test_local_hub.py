"""The provider `local` and the hub: what is fetched, what is taken from this machine, and what is said without either."""

import http.server
import json
import os
import subprocess
import sys
from hashlib import sha256
from importlib.util import find_spec
from threading import Thread

import pytest

from openclaw_memory.embeddings.local import BACKENDS, create

NEEDED = ("sentence_transformers", "onnxruntime")
MISSING = [name for name in NEEDED if find_spec(name) is None]
# Each of these tests loads torch in a process of its own.
pytestmark = [pytest.mark.nightly, pytest.mark.skipif(bool(MISSING), reason=f"needs the packages {', '.join(MISSING)}")]

LOAD_TWICE = """
import shutil, sys, warnings
from pathlib import Path
warnings.simplefilter("error")
from openclaw_memory import load_embedder
print(load_embedder("local", "acme/small", backend=sys.argv[2]).identity)
for folder in Path(sys.argv[1]).rglob("1_Pooling"):
    shutil.rmtree(folder)
print(load_embedder("local", "acme/small", backend=sys.argv[2]).identity)
"""
LOAD = "from openclaw_memory import load_embedder; print(load_embedder('local', 'acme/small').identity)"
LOAD_BY = LOAD.replace("small'", "small', backend=sys.argv[1]").replace("from", "import sys; from", 1)


@pytest.fixture
def hub(local_folder):
    """The address of a server that has the model, as the hub would serve `acme/small`, and the list of what is asked.

    Under `/down` it answers like a hub in trouble.
    """
    asked = []
    files = [path.relative_to(local_folder).as_posix() for path in local_folder.rglob("*") if path.is_file()]
    commit = {"X-Repo-Commit": "c" * 40}

    class Hub(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            name = self.path.partition("/resolve/")[2].partition("/")[2]
            if self.path.startswith("/down"):
                self.send(b"", 503)
            elif self.path.startswith("/api/models/acme/small/tree/") and "?recursive=true" in self.path:
                sizes = {file: (local_folder / file).stat().st_size for file in files}
                tree = [{"type": "file", "path": file, "size": size, "oid": file} for file, size in sizes.items()]
                self.send(json.dumps(tree).encode())
            elif self.path.startswith("/api/models/acme/small") and "/tree/" not in self.path:
                siblings = [{"rfilename": file} for file in files]
                self.send(json.dumps({"id": "acme/small", "sha": "c" * 40, "siblings": siblings}).encode())
            elif name and (local_folder / name).is_file():
                content = (local_folder / name).read_bytes()
                self.send(content, ETag=f'"{sha256(content).hexdigest()}"', **commit)
            else:
                self.send(b"", 404, **({"X-Error-Code": "EntryNotFound", **commit}))

        do_HEAD = do_GET  # noqa: N815 - the name that the server looks for

        def send(self, content, status=200, **headers):
            self.send_response(status)
            for name, value in {**headers, "Content-Length": len(content)}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        serving.join()


def run(code: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own: where the hub is, its client reads once."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_TELEMETRY": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_model_is_fetched_mended_where_cut_short_and_then_taken_without_asking(hub, tmp_path, local_folder, backend):
    address, asked = hub
    identity = create(local_folder, device="cpu", backend=backend).identity
    told = run(LOAD_TWICE, tmp_path, backend, HF_HOME=str(tmp_path), HF_ENDPOINT=address)
    assert (told.stdout.split(), told.stderr) == ([identity] * 2, "")
    assert any("model.safetensors" in path for path in asked) == (backend == "torch")
    assert any(".onnx" in path for path in asked) == (backend == "onnx")
    asked.clear()
    again = run(LOAD_BY, backend, HF_HOME=str(tmp_path), HF_ENDPOINT=address)
    assert (again.stdout.strip(), again.stderr, asked) == (identity, "", [])
    either = run(LOAD, HF_HOME=str(tmp_path), HF_ENDPOINT=address)
    assert (either.stdout.strip(), asked) == (identity, [])  # what is here is not fetched for another backend


def test_a_hub_in_trouble_is_asked_once(hub, tmp_path):
    address, asked = hub
    failed = run(LOAD, HF_HOME=str(tmp_path), HF_ENDPOINT=f"{address}/down")
    assert "'acme/small' is not on this machine, and the hub cannot be reached" in failed.stderr
    assert f"{address}/down answers 503" in failed.stderr
    assert asked == ["/down"]
