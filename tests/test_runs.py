"""What holds for each run of these tests: which warnings fail it, and that nothing of it is left."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cleaner import MARK, find_processes
from processes import ROOT
from watching import eventually

# Imported by name from a folder that is no part of the repository, as what is installed is.
DEPENDENCY = """
import threading
import warnings


def warn(stacklevel=1):
    warnings.warn("old", DeprecationWarning, stacklevel=stacklevel)


class Unraisable:
    def __del__(self):
        raise ValueError


def fail_in_a_thread():
    def fail():
        raise ValueError

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
"""

# What a test does, and whether it passes.
CASES = {
    "dependency.warn()": True,
    "dependency.Unraisable()": True,
    "dependency.fail_in_a_thread()": True,
    "dependency.warn(stacklevel=2)": False,
    "embedding_faults.warn()": False,
    "openclaw_memory_probe.warn()": False,
    "openclaw_memory_probe.Unraisable()": False,
    "openclaw_memory_probe.fail_in_a_thread()": False,
    "open(__file__)": False,
}


# A test that leaves a process and folders behind, and then passes, fails or waits to be interrupted.
LEAVES = f"""
import os, subprocess, sys, tempfile, time
from pathlib import Path

CODE = "import signal, time; signal.signal(signal.SIGTERM, signal.{{on_term}}); print(flush=True); time.sleep(600)"


def test_leaves(tmp_path):
    left = subprocess.Popen([sys.executable, "-c", CODE], stdout=subprocess.PIPE, start_new_session=True)
    left.stdout.readline()
    left.returncode = 0
    tempfile.mkdtemp()
    (tmp_path / "written").touch()
    Path("mark").write_text(os.environ["{MARK}"])
    os.replace("mark", "started")
    {{last}}
"""
# With no other plugins, which takes half the time.
PYTEST = [sys.executable, "-m", "pytest", *"-v -p no:cacheprovider -p asyncio -p pytest_socket -p xdist".split()]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with the settings of these tests, for tests of its own, and with a folder for all that they write."""
    for name in ("pyproject.toml", "tests/conftest.py", "tests/cleaner.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", str(tmp_path / "scratch"))
    path = os.pathsep.join(map(str, [tmp_path / "site-packages", tmp_path, *sys.path]))
    monkeypatch.setenv("PYTHONPATH", path)
    return tmp_path


@pytest.mark.nightly
def test_a_warning_is_an_error_where_a_module_of_ours_causes_it_and_shown_where_a_dependency_does(project):
    for name in ("site-packages/dependency.py", "openclaw_memory_probe/__init__.py", "tests/embedding_faults.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(DEPENDENCY, encoding="utf-8")
    tests = [f"def test_{at}():\n    {call}\n" for at, call in enumerate(CASES)]
    imports = "import dependency, embedding_faults, openclaw_memory_probe"
    (project / "tests" / "test_calls.py").write_text("\n".join([imports, *tests]), encoding="utf-8")
    done = subprocess.run([*PYTEST, "tests"], cwd=project, capture_output=True, text=True, check=False)
    passed = [outcome == "PASSED" for outcome in re.findall(r"::test_\d+ (PASSED|FAILED)", done.stdout)]
    assert dict(zip(CASES, passed, strict=True)) == CASES, done.stdout + done.stderr
    assert "3 warnings" in done.stdout, "those of a dependency are shown"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds the processes in /proc")
@pytest.mark.parametrize(
    ("last", "number", "options"),
    [
        ("time.sleep(600)", signal.SIGKILL, ["-n1"]),
        *(
            pytest.param(*case, marks=pytest.mark.nightly)
            for case in [
                ("pass", None, []),
                ("raise AssertionError", None, []),
                ("time.sleep(600)", signal.SIGINT, []),
                ("time.sleep(600)", signal.SIGINT, ["-n1"]),
                ("time.sleep(600)", signal.SIGTERM, ["-n1"]),
                ("time.sleep(600)", signal.SIGKILL, []),
            ]
        ),
    ],
)
@pytest.mark.nightly
def test_of_a_run_nothing_is_left_but_what_a_failed_test_wrote(last, number, options, project):
    test = LEAVES.format(last=last, on_term="SIG_IGN" if last == "pass" else "SIG_DFL")
    (project / "tests" / "test_leaves.py").write_text(test, encoding="utf-8")
    with subprocess.Popen([*PYTEST, *options, "tests"], cwd=project, stdout=subprocess.DEVNULL) as run:
        eventually((project / "started").exists)
        if number == signal.SIGTERM:  # to all that the run has started, too, as `pkill` may send it
            children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text(encoding="utf-8").split()
            for pid in children:
                os.kill(int(pid), number)
        if number:
            run.send_signal(number)
    mark = (project / "started").read_text(encoding="utf-8")
    eventually(lambda: not find_processes(mark))
    kept = {"written"} if "raise" in last else set()
    links = {"pytest-current"}  # pytest's own, which leads nowhere then
    eventually(lambda: {name for *_, names in os.walk(project / "scratch") for name in names} - links == kept)
    eventually(lambda: not list((project / "scratch").glob("openclaw-memory-tests-*")))
