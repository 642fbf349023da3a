"""Run the GGUF models of provider `local` by llama.cpp, in a process that ends with this one.

A crash of llama.cpp ends that process alone. It listens on loopback, and answers nobody without its key.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Mapping
from hashlib import file_digest
from http.client import HTTPConnection, HTTPException
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any
from weakref import finalize

from openclaw_memory.errors import EmbedderError, MissingExtraError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GgufModel"]

# What llama.cpp reads at once at most, and takes memory for; a chunk of notes has a few hundred tokens.
MAX_TOKENS = 2048
_SERVE = "from openclaw_memory_gguf import serve; serve()"


class GgufModel:
    """A GGUF model in a process of llama.cpp, which is started again if it has ended.

    Attributes:
        limit: How many tokens it reads.
        prompts: Empty: a GGUF file has no prompts.
        has_tokens: False: llama.cpp gives the vector of a text, or else those of its tokens.
        fingerprint: Tells its file from those of other models.
    """

    prompts: Mapping[str, str] = {}
    has_tokens = False
    _process: subprocess.Popen[str] | None = None
    _address = ""

    @classmethod
    def load(cls, name: str, options: Mapping[str, Any], *, is_online: bool) -> GgufModel:
        """Load a model from a file, from the hub's cache on this machine, or, if `is_online`, from the hub.

        Args:
            name: The path of the file, or `hf:OWNER/REPOSITORY/FILE.gguf`.
            options: The device, and the revision and the cache folder of the hub.
            is_online: Whether it may be downloaded.

        Raises:
            MissingExtraError: xllamacpp or huggingface_hub is not installed.
            EmbedderError: It has another name, or llama.cpp cannot load it.
        """
        if missing := [package for package in ("xllamacpp", "huggingface_hub") if find_spec(package) is None]:
            raise MissingExtraError(
                f'a GGUF file needs {missing[0]}: pip install ".[gguf]" in a checkout of openclaw_memory'
            )
        if not name.startswith("hf:"):
            return cls(Path(name), options["device"])
        if not (match := re.fullmatch("hf:([^/]+/[^/]+)/(.+)", name)):
            raise EmbedderError(f"a GGUF file on the hub is named hf:OWNER/REPOSITORY/FILE.gguf, not {name}")
        from huggingface_hub import hf_hub_download

        source = {"revision": options["revision"], "cache_dir": options["cache_folder"]}
        return cls(Path(hf_hub_download(*match.groups(), **source, local_files_only=not is_online)), options["device"])

    def __init__(self, path: Path, device: str | None) -> None:
        """Take a file, and `"cpu"` or None for a GPU if there is one."""
        self._settings = {"path": str(path), "device": device, "key": secrets.token_urlsafe()}
        with path.open("rb") as file:
            self.fingerprint = f"gguf {file_digest(file, 'blake2b').hexdigest()}"
        size = self._ask("/v1/models")["data"][0]["meta"]
        self.limit: int = min(size["n_ctx"], size["n_ctx_train"])

    def count_tokens(self, texts: list[str]) -> list[int]:
        """Return how many tokens an unlimited model would read of each text, the special ones included."""
        return [len(self._ask("/tokenize", {"content": text, "add_special": True})["tokens"]) for text in texts]

    def encode(self, texts: list[str], prompt: str, **_: object) -> tuple[NDArray[Any], list[None]]:
        """Return the vectors of texts, each read after the prompt and without blanks around both."""
        import numpy as np

        rows = self._ask("/v1/embeddings", {"input": [(prompt + text).strip() for text in texts]})["data"]
        return np.array([row["embedding"] for row in rows]), [None] * len(texts)

    def close(self) -> None:
        """End the process; the next text starts another one."""
        if self._process is not None:
            self._process.__exit__(None, None, None)

    def _ask(self, path: str, body: Any = None) -> Any:
        if self._process is None or self._process.poll() is not None:
            self._start()
        connection = HTTPConnection(self._address)
        headers = {"Authorization": f"Bearer {self._settings['key']}"}
        try:
            connection.request("POST" if body else "GET", path, json.dumps(body), headers)
            answer = json.loads(connection.getresponse().read())
        except (OSError, HTTPException, ValueError) as error:
            raise EmbedderError(f"llama.cpp broke off ({error!r}); it is started again for the next text") from error
        finally:
            connection.close()
        if "error" in answer:
            raise EmbedderError(f"llama.cpp refuses {path}: {answer['error']['message']}")
        return answer

    def _start(self) -> None:
        """Start the process, and wait until it has loaded the model."""
        pipe, command = subprocess.PIPE, [sys.executable, "-c", _SERVE]
        with TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
            # A session of its own: Ctrl+C is for this process, which ends the other by closing its standard input.
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True, start_new_session=True)  # noqa: S603
            finalize(self, process.__exit__, None, None, None)
            self._process = process
            print(json.dumps(self._settings), file=process.stdin, flush=True)
            self._address = process.stdout.readline().strip() if process.stdout else ""
            if not self._address:
                log.seek(0)
                lines = log.read().splitlines() or [f"it ended with {process.wait()}"]
                # The first error of llama.cpp has the reason; an error of Python has it in the last line.
                reason = next((line.partition(" E ")[2] for line in lines if " E " in line), lines[-1])
                raise EmbedderError(f"llama.cpp cannot load it: {reason}")


def serve() -> None:
    """Serve the model that standard input names, until standard input ends."""
    xllamacpp = import_module("xllamacpp")
    output = os.dup(1)
    os.dup2(2, 1)  # llama.cpp prints what is no answer
    settings = json.loads(sys.stdin.readline())
    params = xllamacpp.CommonParams()
    params.model.path, params.api_keys = settings["path"], [settings["key"]]
    params.embedding, params.ui, params.verbosity = True, False, 1
    params.n_ctx = params.n_batch = params.n_ubatch = MAX_TOKENS
    params.n_gpu_layers = 0 if settings["device"] == "cpu" else -1
    server = xllamacpp.Server(params)
    os.write(output, server.listening_address.removeprefix("http://").encode() + b"\n")
    sys.stdin.read()
    os._exit(0)  # whatever it is at work on
