"""Answer Claude Code's hooks by a process in the background that has all modules loaded: its client, and the process.

The client is a program of its own, and imports as little as it can: most of what a hook costs is loading modules. The
process keeps nothing else: it opens the memory again for each event, so that settings and files are those of now.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes long to import
    import socket

# What differs from hook to hook, or between two terminals, and changes no answer. All else in the environment may: a
# process answers in one environment.
_PASSING = ("_", "CLAUDE", "COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "SSH_", "TERM", "TMUX", "VSCODE_", "WINDOWID")
_LONGEST_PATH = 107  # bytes
_SECONDS = 2.0  # in which a process that is not stopped begins to work
IDLE_SECONDS = 600.0
FOLDER = "hooks"
_START = "import sys; from openclaw_memory_hooks.background import serve; serve(sys.argv[1])"


def main() -> None:
    """Answer the event on stdin; the arguments are those of `openclaw-memory hook`."""
    arguments = sys.argv[1:]
    path = None if sys.stdin.isatty() else locate_socket(arguments)
    event = sys.stdin.buffer.read() if path else b""
    if path and (reply := ask(path, "".join(arguments[2:]), event)) is not None:
        sys.stdout.buffer.write(reply)
        return
    import gc
    import io

    gc.set_threshold(100_000)  # nothing of what is loaded is garbage
    from openclaw_memory.cli import main as run

    sys.stdin = io.TextIOWrapper(io.BytesIO(event)) if path else sys.stdin
    try:
        run(["hook", *arguments])
    finally:
        if path and b'"SessionEnd"' not in event:
            _start_process(path)


def _start_process(path: str) -> None:
    """Start the process behind a socket, unless it runs or starts already: it holds a lock while it lives."""
    import fcntl
    import subprocess
    from contextlib import suppress

    from openclaw_memory.errors import OpenClawMemoryError
    from openclaw_memory.workspace import SafeFolder

    with suppress(OSError, OpenClawMemoryError):  # it runs, or the data folder cannot be written to
        folder, name = SafeFolder.locate_data(), f"{FOLDER}/{os.path.basename(path)}.lock"
        folder.append(name, b"\n")  # which makes the file
        with folder.open(name) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The host waits for no output of a process that has none of its pipes.
            command, descriptors, null = [sys.executable, "-c", _START, path], (lock,), subprocess.DEVNULL
            subprocess.Popen(  # noqa: S603
                command, stdin=null, stdout=null, stderr=null, cwd="/", pass_fds=descriptors, start_new_session=True
            )


def locate_socket(arguments: list[str]) -> str | None:
    """Return the path of the process's socket; None where there is none for these arguments or this system."""
    is_path = len(arguments) == 3 and arguments[1] in {"-w", "--workspace"} and arguments[2].startswith("/")
    if sys.platform != "linux" or arguments[:1] != ["claude-code"] or not (is_path or len(arguments) == 1):
        return None
    from binascii import crc32

    get, names = os.environ.get, sorted(name for name in os.environ if not name.startswith(_PASSING))
    key = crc32(os.fsencode("\0".join([sys.executable, __file__, *(f"{name}={get(name)}" for name in names)])))
    data = os.path.join(get("XDG_DATA_HOME", "").strip() or "~/.local/share", "openclaw_memory")
    home = os.path.abspath(os.path.expanduser(get("OPENCLAW_MEMORY_HOME", "").strip() or data))
    path = f"{home}/{FOLDER}/{key:08x}"
    return path if len(os.fsencode(path)) <= _LONGEST_PATH else None


def ask(path: str, workspace: str, event: bytes) -> bytes | None:
    """Ask the process behind a socket; return None if there is none, or it ends or hangs before it has answered.

    Args:
        path: The socket, in a folder that only this user may enter.
        workspace: The full path of the workspace; "" for the current folder, if it is one.
        event: The event, as the host wrote it.
    """
    from _socket import AF_UNIX, SHUT_WR, SOCK_STREAM, socket  # a third of what `socket` takes to import

    reply, connection = b"", socket(AF_UNIX, SOCK_STREAM)
    try:
        folder = os.lstat(os.path.dirname(path))
        if folder.st_uid != os.getuid() or folder.st_mode & 0o077:
            return None
        connection.settimeout(_SECONDS)
        connection.connect(path)
        connection.sendall(b"\0".join((os.fsencode(workspace), os.fsencode(os.getcwd()), event)))
        connection.shutdown(SHUT_WR)
        if connection.recv(1) == b".":  # sent before it works, which may take long
            connection.settimeout(None)
            while part := connection.recv(65_536):
                reply += part
    except OSError:
        return None
    finally:
        connection.close()
    return reply[:-1] if reply.endswith(b"\0") else None


def serve(path: str, idle_seconds: float = IDLE_SECONDS) -> None:
    """Answer events until none comes for a while, or the library on the disk is no longer the loaded one.

    Args:
        path: The socket, in a folder that only this user may enter; one that a crash has left is replaced.
        idle_seconds: How long to wait for an event.
    """
    import socket
    from contextlib import suppress
    from pathlib import Path
    from threading import Thread

    _load_modules()
    stamps = _stamp_modules()
    Path(path).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener, suppress(OSError):  # in the end, no event or no socket is there
        listener.bind(path)
        os.chmod(path, 0o600)
        listener.listen()
        listener.settimeout(idle_seconds)
        try:
            while True:
                connection, _ = listener.accept()
                loaded, stamps = stamps, _stamp_modules()
                if not loaded.items() <= stamps.items():
                    connection.close()  # the client answers by itself, and starts the next process
                    break
                Thread(target=_answer, args=(connection,)).start()
        finally:
            Path(path).unlink(missing_ok=True)


def _load_modules() -> None:
    """Answer a prompt of nobody's, so that all that an answer takes is loaded before a host waits for it."""
    from tempfile import TemporaryDirectory

    from openclaw_memory import Memory
    from openclaw_memory_hooks.claude_code import answer

    event = {"hook_event_name": "UserPromptSubmit", "session_id": "none", "prompt": "Remember the boiler's code."}
    with TemporaryDirectory() as folder, Memory.open(folder, index_path=f"{folder}/index.sqlite") as memory:
        memory.append("The boiler's code is 4711.")
        memory.sync()
        answer(event, memory)


def _stamp_modules() -> dict[str, int]:
    """Return when the files of this library, and the folders that packages are installed in, were last changed."""
    modules = [module for name, module in tuple(sys.modules.items()) if name.startswith("openclaw_memory")]
    paths = {*sys.path, *(str(getattr(module, "__file__", None)) for module in modules)}
    return {path: os.stat(path).st_mtime_ns for path in paths if os.path.exists(path)}


def _answer(connection: socket.socket) -> None:
    from contextlib import suppress

    from openclaw_memory.cli import Place
    from openclaw_memory_hooks.command import answer_event, is_workspace

    with connection, suppress(OSError), connection.makefile("rb") as stream:  # the client may be gone
        workspace, current, event = stream.read().split(b"\0", 2)
        connection.sendall(b".")
        place = Place(os.fsdecode(workspace or current), None, None, False)
        reply = answer_event(place, "claude-code", "", event) if workspace or is_workspace(place.folder) else ""
        connection.sendall(f"{reply}\n\0".encode() if reply else b"\0")


if __name__ == "__main__":
    main()
