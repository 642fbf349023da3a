"""Runs the program QMD: its commands, each within a time limit, and its server; nothing of it outlives this process."""

from __future__ import annotations

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
from pathlib import Path
from typing import IO, Any, NamedTuple

from openclaw_memory import _forks
from openclaw_memory.config.config import environment_of_a_child
from openclaw_memory.config.sections import BackendConfig
from openclaw_memory.errors import BackendError

INDEX_NAME = "index.sqlite"
# Without a name QMD looks for a configuration in the current folder and those above, which may be anybody's.
_CONFIGURATION = "openclaw-memory"
_INSTALL = "install it with Node.js 22 or later: `npm install -g @tobilu/qmd@2.8.3`"
_NAME_IT = "or name it in the setting backend.command"
# The shell outlives no pipe to this process: where that ends, however it was killed, so does the whole group. It waits
# for what it has started, so that no process is left that nobody waits for.
_GUARD = (
    'exec 3<&0; { read -r _ <&3; kill -9 0; } >/dev/null 2>&1 & guard=$!; "$@" </dev/null 3<&-; code=$?; '
    "kill -9 $guard; wait $guard 2>/dev/null; exit $code"
)
_VERSION = re.compile(r"\bqmd v?(\d+)\.\d+\S*")
_LEAST_VERSION = 2
_DAMAGED = ("SQLITE_NOTADB", "SQLITE_CORRUPT", "file is not a database", "disk image is malformed")
# What Node.js says where a package was made for another version of it; 139 and 134 are the ends of such a process.
_WRONG_NODE = ("NODE_MODULE_VERSION", "ERR_DLOPEN_FAILED", "SyntaxError", "Unsupported engine")
_CRASHES = frozenset({132, 134, 139, -signal.SIGSEGV, -signal.SIGABRT})
_LEAST_SECONDS = 0.05
_ENDING_SECONDS = 2.0


class DamagedIndexError(BackendError):
    """QMD's own index is damaged: it is derived, and made again once it is deleted."""


class Said(NamedTuple):
    """What a command wrote."""

    out: str
    error: str


class _Running(NamedTuple):
    """A process, the leader of its own group, and the end of the pipe that keeps it alive."""

    process: subprocess.Popen[str]
    lifeline: IO[bytes]


class _Server(NamedTuple):
    """A server that answers on a port of this machine."""

    running: _Running
    port: int


class QmdProgram:
    """The program as it runs for one index. Safe to use from several threads."""

    def __init__(self, config: BackendConfig, folder: Path) -> None:
        """Start nothing yet.

        Args:
            config: The command, and how long an answer may take.
            folder: Where its configuration and its index are.
        """
        self._config, self._folder = config, folder
        self._lock, self._starting = _forks.lock(), _forks.lock()
        self._processes: set[_Running] = set()
        self._server: _Server | None = None
        self._version: str | None = None
        self._is_closed = False
        _forks.in_child(self)

    def after_fork(self) -> None:
        """Let go of the processes of the parent, which are its own to end."""
        for running in self._processes:
            running.lifeline.close()
            running.process.returncode = 0  # the parent waits for it
        self._processes, self._server = set(), None

    def version(self) -> str:
        """Return the version of the program.

        Raises:
            BackendError: It is missing, does not run, or is too old.
        """
        if self._version is None:
            said = self.run("--version", seconds=self._config.timeout_seconds)
            found = _VERSION.search(said.out)
            if found is None or int(found[1]) < _LEAST_VERSION:
                raise BackendError(
                    f"{self._name} answers --version with {(said.out or said.error).strip()[:80]!r}, and is no QMD "
                    f"{_LEAST_VERSION}: {_INSTALL}, {_NAME_IT}"
                )
            self._version = found[0].removeprefix("qmd ")
        return self._version

    def missing(self) -> str | None:
        """Return that the program is not installed, in words; None where it is."""
        name = self._config.command[0] if self._config.command else ""
        if shutil.which(os.path.expanduser(name)) is not None:
            return None
        return f"there is no program {name!r}: {_INSTALL}, {_NAME_IT}"

    def run(self, *arguments: str, seconds: float) -> Said:
        """Run a command and return what it wrote.

        Args:
            arguments: The command and its arguments.
            seconds: How long it may take; then all its processes are killed.

        Raises:
            BackendError: The program is missing, failed, or took longer.
        """
        running = self._start(arguments)
        try:
            out, error = running.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as late:
            raise BackendError(
                f"`qmd {arguments[0]}` did not end within {seconds:g} s and was killed: {_advice(arguments[0])}"
            ) from late
        finally:
            self._end(running)
        if self._is_closed:
            raise BackendError("the engine was closed while QMD was running")
        if code := running.process.returncode:
            raise self._failure(arguments[0], code, f"{error}\n{out}")
        return Said(out, error)

    def ask(self, searches: Sequence[Mapping[str, str]], limit: int) -> list[Mapping[str, Any]]:
        """Return what the server finds; it is started where it does not run.

        Args:
            searches: What to search for, as QMD's POST /query takes it.
            limit: At most so many results.

        Raises:
            BackendError: It did not start, failed, or did not answer in time.
        """
        import http.client

        until = time.monotonic() + self._config.timeout_seconds
        server = self._serving(until)
        body = json.dumps(
            {"searches": searches, "limit": limit, "rerank": False, "collections": [self._config.collection]}
        )
        left = max(until - time.monotonic(), _LEAST_SECONDS)
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=left)
        try:
            connection.request("POST", "/query", body.encode(), {"Content-Type": "application/json"})
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            self._stop(server)
            words = f"did not answer within {left:.1f} s" if isinstance(error, TimeoutError) else f"failed ({error})"
            raise BackendError(f"QMD's server {words}, and was ended: the next search starts another one") from error
        finally:
            connection.close()
        return _hits(text, response.status)

    def stop(self) -> None:
        """End the server, so that its files can be deleted."""
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            self._end(server.running)

    def close(self) -> None:
        """End everything that runs. Calling it twice is allowed."""
        self._is_closed = True
        self.stop()
        with self._lock:
            running = list(self._processes)
        for one in running:
            _kill(one)

    @property
    def _name(self) -> str:
        return " ".join(self._config.command)

    def _start(self, arguments: Sequence[str], port: int | None = None) -> _Running:
        if self._is_closed:
            raise BackendError("the engine is closed: open the memory again")
        if not self._config.command or not self._config.command[0]:
            raise BackendError('the setting backend.command names no program: write ["qmd"]')
        program = shutil.which(os.path.expanduser(self._config.command[0]))
        if program is None:
            raise BackendError(self.missing())
        command = [program, *self._config.command[1:], "--index", _CONFIGURATION, *arguments]
        if os.name == "posix":
            command = ["/bin/sh", "-c", _GUARD, "qmd", *command]
        place = {"INDEX_PATH": str(self._folder / INDEX_NAME), "QMD_CONFIG_DIR": str(self._folder), "NO_COLOR": "1"}
        theirs, ours = os.pipe()
        lifeline = open(ours, "wb", buffering=0)  # noqa: SIM115 - it is open for as long as the process runs
        try:
            process = subprocess.Popen(  # noqa: S603 - the command is that of the user's settings
                command,
                stdin=theirs,
                stdout=subprocess.PIPE if port is None else subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=self._folder,
                env=environment_of_a_child(place),
                start_new_session=True,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            lifeline.close()
            raise BackendError(f"{self._name} cannot be started ({error}): {_INSTALL}, {_NAME_IT}") from error
        finally:
            os.close(theirs)
        running = _Running(process, lifeline)
        if not self._keep(running):  # it was closed meanwhile
            self._end(running)
            raise BackendError("the engine was closed while QMD was started")
        return running

    def _keep(self, running: _Running) -> bool:
        with self._lock:
            self._processes.add(running)
            return not self._is_closed

    def _end(self, running: _Running) -> None:
        _kill(running)
        process = running.process
        with suppress(subprocess.TimeoutExpired):
            process.wait(self._config.timeout_seconds)
        for stream in (process.stdout, process.stderr if process.stdout else None, running.lifeline):
            if stream is not None:
                stream.close()
        with self._lock:
            self._processes.discard(running)

    def _stop(self, server: _Server) -> None:
        with self._lock:
            if self._server is server:
                self._server = None
        self._end(server.running)

    def _serving(self, until: float) -> _Server:
        with self._starting:
            server = self._server
            if server is not None and server.running.process.poll() is None:
                return server
            self.stop()
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            arguments = ("mcp", "--http", "--host", "127.0.0.1", "--port", str(port))
            running = self._start(arguments, port)
            said: deque[str] = deque(maxlen=20)
            heard = threading.Event()
            reader = threading.Thread(
                target=_listen, args=(running.process.stderr, f":{port}/", said, heard), daemon=True
            )
            reader.start()
            # The line is that of this very process: where another program has taken the port, it does not come.
            if not heard.wait(max(until - time.monotonic(), _LEAST_SECONDS)) or not _names(said, port):
                with suppress(subprocess.TimeoutExpired):  # where it has said all, it is about to end
                    running.process.wait(_ENDING_SECONDS if heard.is_set() else 0)
                code = running.process.poll()
                self._end(running)
                if code:
                    raise self._failure("mcp", code, "\n".join(said))
                raise BackendError(
                    f"QMD's server did not start within {self._config.timeout_seconds:g} s: {' '.join(said)[-200:]}; "
                    "give it more time (backend.timeout_seconds), or turn it off (backend.server)"
                )
            self._server = _Server(running, port)
            return self._server

    def _failure(self, command: str, code: int, said: str) -> BackendError:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        words = next((line for line in lines if "Error" in line), lines[-1] if lines else "it said nothing")[:300]
        if any(sign in said for sign in _DAMAGED):
            return DamagedIndexError(f"QMD's index {self._folder / INDEX_NAME} is damaged ({words}): sync(force=True)")
        if code in {126, 127}:
            return BackendError(f"{self._name} does not run ({words}): put Node.js 22 or later on PATH, {_NAME_IT}")
        if code in _CRASHES or any(sign in said for sign in _WRONG_NODE):
            return BackendError(
                f"`qmd {command}` crashed (code {code}: {words}), as it does with another Node.js than that which it "
                f"was installed for: {_INSTALL}"
            )
        return BackendError(f"`qmd {command}` failed with code {code}: {words}; run it by hand to see more")


def _kill(running: _Running) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(running.process.pid, signal.SIGKILL)
        else:
            running.process.kill()


def _listen(stream: IO[str], wanted: str, said: deque[str], heard: threading.Event) -> None:
    """Read what the server says to its end, so that it never waits for a reader."""
    with suppress(OSError, ValueError), stream:
        for line in stream:
            said.append(line.strip())
            if wanted in line:
                heard.set()
    heard.set()


def _names(said: Sequence[str], port: int) -> bool:
    return any(f":{port}/" in line and "listening" in line for line in list(said))


def _hits(text: str, status: int) -> list[Mapping[str, Any]]:
    with suppress(ValueError):
        answer = json.loads(text)
        found = answer.get("results") if isinstance(answer, dict) else answer
        if status == 200 and isinstance(found, list) and all(isinstance(one, dict) for one in found):
            return found
    raise BackendError(f"QMD's server answered with status {status}: {text.strip()[:200]!r}; look at what it logs")


def _advice(command: str) -> str:
    if command in {"embed", "query", "vsearch"}:
        return (
            "it loads models, and downloads them at the first time: run `qmd pull` once with a network, give it more "
            'time (backend.timeout_seconds, backend.update_timeout_seconds), or use backend.mode = "search"'
        )
    return "give it more time (backend.timeout_seconds, backend.update_timeout_seconds), or run it by hand"
