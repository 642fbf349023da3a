"""What is installed: the wheel holds the packages whole, nothing else, and works on its own."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# A package's folder in the repository, by the name that it is imported under.
PACKAGES = {
    "openclaw_memory": ROOT / "openclaw_memory",
    "langchain_openclaw_memory": ROOT / "adapters" / "langchain_openclaw_memory",
    "llama_index_openclaw_memory": ROOT / "adapters" / "llama_index_openclaw_memory",
    "openclaw_memory_hooks": ROOT / "integrations" / "openclaw_memory_hooks",
    "openclaw_memory_mcp": ROOT / "integrations" / "openclaw_memory_mcp",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, unpacked: a folder that can stand on the path."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def files(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_only_uniquely_named_packages_are_installed(wheel):
    assert {path.name for path in wheel.iterdir() if not path.name.endswith(".dist-info")} == set(PACKAGES)


@pytest.mark.parametrize("name", PACKAGES)
def test_the_wheel_holds_every_file_of_a_package(name, wheel):
    assert files(wheel / name) == files(PACKAGES[name])


def test_types_data_and_notices_come_along(wheel):
    assert (wheel / "openclaw_memory" / "py.typed").exists()
    assert (wheel / "openclaw_memory" / "data" / "demo" / "MEMORY.md").exists()
    (licenses,) = wheel.glob("*.dist-info/licenses")
    assert {path.name for path in licenses.iterdir()} == {"LICENSE", "NOTICE"}


def test_the_demonstration_runs_from_the_wheel(wheel, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(wheel), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", "-m", "openclaw_memory", "demo"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "memory/2026-05-12.md#L3-L4" in done.stdout


@pytest.mark.parametrize(
    ("package", "extra"), [("langchain_openclaw_memory", "langchain"), ("llama_index_openclaw_memory", "llama-index")]
)
def test_an_adapter_without_its_framework_says_what_to_install(package, extra, wheel):
    # -S leaves out site-packages: no framework is installed there.
    code = f"import sys; sys.path.insert(0, {str(wheel)!r}); import {package}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert f'pip install "openclaw-memory-index[{extra}]"' in done.stderr.splitlines()[-1]
