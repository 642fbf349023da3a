"""A terminal of a given size in which a command runs, as a person sees it: what it writes, and keys that are typed."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

SECONDS = 60  # a command that has not written what is waited for by then has failed
_CODE = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[\[(][0-9;?]*[ -/]*[@-~]|\x1b[=>]")
COLOURFUL = {"TERM": "xterm-256color", "NO_COLOR": "", "PAGER": "cat"}

OURS = (sys.executable, "-m", "openclaw_memory")


class Terminal:
    """A command in a pseudo-terminal, ours unless another `program` is named; `seen` is all that it has written so far."""

    def __init__(self, *arguments, cwd, columns=80, lines=60, environment=None, program=OURS):
        environment = {**os.environ, **COLOURFUL, **(environment or {})}
        for name in ("COLUMNS", "LINES"):  # they would go before what the terminal says
            environment.pop(name, None)
        own, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

        def lead():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a worker of pytest may ignore it, which children inherit

        self.process = subprocess.Popen(
            [*program, *map(str, arguments)],
            stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=environment, start_new_session=True,
            preexec_fn=lead,  # noqa: PLW1509 - the only way to give a child its terminal; tests start no thread here
        )  # fmt: skip
        os.close(theirs)
        self.own, self.seen = own, ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.own)

    def wait_for(self, words):
        """Read until the words are on the screen."""
        self._read(lambda: words in bare(self.seen))
        return self

    def wait(self, is_enough):
        """Read until this is so."""
        self._read(is_enough)

    def type(self, keys):
        os.write(self.own, keys.encode())
        return self

    def interrupt(self):
        """Press Ctrl-C, each second again: CPython overlooks one that comes just before it waits for a line."""
        pressed = 0.0

        def press():
            nonlocal pressed
            if time.monotonic() - pressed > 1:
                self.type("\x03")
                pressed = time.monotonic()
            return False

        self._read(press)

    def end(self):
        """Read until the command has ended; return its exit code."""
        self._read(lambda: False)
        return self.process.wait(SECONDS)

    def _read(self, is_enough):
        until = time.monotonic() + SECONDS
        while not is_enough():
            assert time.monotonic() < until, self.seen
            if not select.select([self.own], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(self.own, 65536)
            except OSError:  # Linux: the other side is closed
                return
            if not data:
                return
            self.seen += data.decode(errors="replace")


def bare(text):
    """A text without what colours, links and moves the cursor."""
    return _CODE.sub("", text).replace("\r\n", "\n")
