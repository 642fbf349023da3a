"""Run the program QMD: its commands, each within a time limit, and its server, which ends with this process."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from openclaw_memory.errors import StoreError
from openclaw_memory_qmd.settings import QmdSettings

INDEX_NAME = "index.sqlite"
COLLECTION = "memory"
# Without a name QMD looks for a configuration in the current folder and those above, which may be anybody's.
_CONFIGURATION = "openclaw-memory"
_INSTALL = (
    "install it with Node.js 22 or later: `npm install -g @tobilu/qmd@2`, or name it in the setting plugins.qmd.command"
)
_SLOW = (
    "give it more time (plugins.qmd.timeout_seconds, update_timeout_seconds), or run `qmd pull` once: models are "
    "downloaded at the first use"
)
# The shell waits for the end of its input, a pipe from this process: however that ends, so does the whole group.
_GUARD = (
    'exec 3<&0; { read -r _ <&3; kill -9 0; } >/dev/null 2>&1 & guard=$!; "$@" </dev/null 3<&-; code=$?; '
    "kill -9 $guard; wait $guard 2>/dev/null; exit $code"
)
_VERSION = re.compile(r"\bqmd v?(\d+)\.\d+\S*")
_LEAST_VERSION = 2
_DAMAGED = ("SQLITE_NOTADB", "SQLITE_CORRUPT", "file is not a database", "disk image is malformed")
_POLL_SECONDS = 0.02


class DamagedIndexError(StoreError):
    """QMD's own index is damaged: delete it, and QMD builds it again."""


class Output(NamedTuple):
    """The output of a command."""

    out: str
    error: str


@dataclass(frozen=True, eq=False)
class _Process:
    """A process that leads its own group, the pipe that keeps it alive, and the readers of its output."""

    popen: subprocess.Popen[str]
    lifeline: IO[bytes]
    readers: list[threading.Thread] = field(default_factory=list)


class QmdProgram:
    """The program, for one index. Safe to use from several threads."""

    def __init__(self, settings: QmdSettings, folder: Path) -> None:
        """Start nothing yet.

        Args:
            settings: The command, and how long an answer may take.
            folder: Where its configuration and its index are.
        """
        self._settings, self._folder = settings, folder
        self._starting = threading.Lock()
        self._processes: set[_Process] = set()
        self._server: tuple[_Process, int] | None = None
        self._is_closed = False

    def locate(self) -> str:
        """Return the path of the program.

        Raises:
            StoreError: It is not installed.
        """
        name = self._settings.command[0] if self._settings.command else ""
        if (path := shutil.which(os.path.expanduser(name))) is None:
            raise StoreError(f"there is no program {name!r}: {_INSTALL}")
        return path

    def check_version(self) -> str:
        """Return the version of the program.

        Raises:
            StoreError: It is missing, does not run, or is too old.
        """
        text = self.run("--version", seconds=self._settings.timeout_seconds).out
        version = _VERSION.search(text)
        if version is None or int(version[1]) < _LEAST_VERSION:
            name = " ".join(self._settings.command)
            raise StoreError(f"{name} has the version {text.strip()[:80]!r}, not {_LEAST_VERSION} of QMD: {_INSTALL}")
        return version[0].removeprefix("qmd ")

    def run(self, *arguments: str, seconds: float) -> Output:
        """Run a command and return its output.

        Args:
            arguments: The command and its arguments.
            seconds: How long it may take; then its whole process group is killed.

        Raises:
            DamagedIndexError: QMD says so of its index.
            StoreError: The program is missing, failed, or took longer.
        """
        process = self._start(arguments)
        try:
            output = Output(*process.popen.communicate(timeout=seconds))
        except subprocess.TimeoutExpired as error:
            raise StoreError(f"`qmd {arguments[0]}` did not end within {seconds:g} s: {_SLOW}") from error
        finally:
            self._end(process)
        if process.popen.returncode:
            raise _make_error(arguments[0], process.popen.returncode, f"{output.error}\n{output.out}")
        return output

    def ask(self, searches: Sequence[Mapping[str, str]], limit: int) -> list[Mapping[str, Any]]:
        """Ask the server, which is started first if it does not run.

        Args:
            searches: The searches, as QMD's POST /query takes it.
            limit: The most results.

        Raises:
            StoreError: It did not start, failed, or did not answer in time.
        """
        until = time.monotonic() + self._settings.timeout_seconds
        with self._starting:
            process, port = self._serve(until)
        body = {"searches": searches, "limit": limit, "rerank": False, "collections": [COLLECTION]}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=max(until - time.monotonic(), _POLL_SECONDS))
        try:
            connection.request("POST", "/query", json.dumps(body).encode(), {"Content-Type": "application/json"})
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            self._end(process)
            raise StoreError(f"QMD's server did not answer and was ended ({error}): {_SLOW}") from error
        finally:
            connection.close()
        if response.status != http.HTTPStatus.OK:
            raise StoreError(f"QMD's server answered with status {response.status}: {text.strip()[:200]!r}")
        return read_hits(text)

    def stop(self) -> None:
        """End everything that runs, so that QMD's files can be deleted."""
        for process in list(self._processes):
            self._end(process)

    def close(self) -> None:
        """End everything that runs, and start nothing any more. Calling it twice is allowed."""
        self._is_closed = True
        self.stop()

    def _start(self, arguments: Sequence[str], *, is_server: bool = False) -> _Process:
        self._check_open()
        command = [self.locate(), *self._settings.command[1:], "--index", _CONFIGURATION, *arguments]
        if os.name == "posix":
            command = ["/bin/sh", "-c", _GUARD, "qmd", *command]
        # Keys of the memory are not for other programs.
        environment = {name: value for name, value in os.environ.items() if name != "OPENCLAW_MEMORY_KEY"}
        environment |= {"INDEX_PATH": str(self._folder / INDEX_NAME), "QMD_CONFIG_DIR": str(self._folder)}
        end, lifeline = os.pipe()
        try:
            popen = subprocess.Popen(  # noqa: S603 - the command of the user's settings
                command,
                stdin=end,
                stdout=subprocess.DEVNULL if is_server else subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._folder,
                env=environment | {"NO_COLOR": "1"},
                start_new_session=True,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            os.close(lifeline)
            raise StoreError(f"QMD cannot be started ({error}): {_INSTALL}") from error
        finally:
            os.close(end)
        process = _Process(popen, os.fdopen(lifeline, "wb", buffering=0))
        self._processes.add(process)
        try:
            self._check_open()
        except StoreError:
            self._end(process)
            raise
        return process

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError("the memory is closed: open it again")

    def _end(self, process: _Process) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(process.popen.pid, signal.SIGKILL)
            else:
                process.popen.kill()
        process.popen.wait()
        for reader in process.readers:
            reader.join()
        for stream in (process.popen.stdout, process.popen.stderr, process.lifeline):
            if stream is not None:
                stream.close()
        self._processes.discard(process)

    def _serve(self, until: float) -> tuple[_Process, int]:
        """Return the server and its port. It is started if it does not run."""
        if self._server is not None and self._server[0].popen.poll() is None:
            return self._server
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        arguments = ("mcp", "--http", "--host", "127.0.0.1", "--port", str(port))
        process = self._start(arguments, is_server=True)
        lines: deque[str] = deque(maxlen=20)
        reader = threading.Thread(target=_read_lines, args=(process.popen.stderr, lines), daemon=True)
        reader.start()
        process.readers.append(reader)
        # The line is that of this very process: if another program has taken the port, it does not come.
        while not any(f":{port}/" in line and "listening" in line for line in list(lines)):
            if process.popen.poll() is not None or time.monotonic() > until:
                code = process.popen.returncode
                self._end(process)
                if code:
                    raise _make_error("mcp", code, "\n".join(lines))
                raise StoreError(f"QMD's server did not start in time: {_SLOW}, or set plugins.qmd.server = false")
            time.sleep(_POLL_SECONDS)
        self._server = process, port
        return self._server


def read_hits(text: str) -> list[Mapping[str, Any]]:
    """Read a list of results, as the server and `--json` write it.

    Raises:
        StoreError: The text is not one.
    """
    with suppress(ValueError):
        answer = json.loads(text)
        hits = answer.get("results") if isinstance(answer, dict) else answer
        if isinstance(hits, list) and all(isinstance(hit, dict) for hit in hits):
            return hits
    raise StoreError(f"QMD answered {text.strip()[:120]!r}, which is not a list of results: {_INSTALL}")


def _make_error(command: str, code: int, text: str) -> StoreError:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    words = next((line for line in lines if "Error" in line), lines[-1] if lines else "it wrote nothing")[:300]
    if any(sign in text for sign in _DAMAGED):
        return DamagedIndexError(f"QMD's index is damaged ({words}): memory.sync(force=True) builds it again")
    return StoreError(
        f"`qmd {command}` failed with code {code}: {words}; it needs the Node.js on PATH that it was installed with, "
        "22 or later: run it by hand to see more"
    )


def _read_lines(stream: IO[str], lines: deque[str]) -> None:
    """Read to the end, so that the server never waits for a reader."""
    with suppress(OSError):
        lines.extend(map(str.strip, stream))
