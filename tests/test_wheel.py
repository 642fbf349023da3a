"""What is installed: the wheel holds the packages whole, nothing else, and works on its own; the sdist holds all."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# A package's folder in the repository, by the name that it is imported under.
EDGES = [path for part in ("adapters", "integrations") for path in (ROOT / part).iterdir() if path.is_dir()]
PACKAGES = {path.name: path for path in [ROOT / "openclaw_memory", *EDGES] if path.name != "__pycache__"}
PACKAGES["openclaw_memory_claude_code"] = PACKAGES.pop("claude_code")
# How NOTICE writes a license, and its identifier: SPDX has none for WordNet's.
LICENSES = {
    "Apache License 2.0": "Apache-2.0",
    "ISC License": "ISC",
    "MIT License": "MIT",
    "Unicode License V3": "Unicode-3.0",
    "WordNet 3.0 License": "LicenseRef-WordNet-3.0",
    "Zero-Clause BSD": "0BSD",
}


def built(kind: str, source: Path, folder: Path) -> Path:
    """The wheel or the sdist of a folder with the source."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    done = subprocess.run(build, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, unpacked: a folder that can stand on the path."""
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(built("wheel", ROOT, folder)) as archive:
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
    texts = {path.relative_to(ROOT).as_posix() for path in (ROOT / "licenses").iterdir()}
    assert files(licenses) == {"LICENSE", "NOTICE", "integrations/openclaw_memory_web/static/htmx.LICENSE.txt", *texts}


def test_the_metadata_name_every_license_of_the_notice_and_of_our_code(wheel):
    (metadata,) = wheel.glob("*.dist-info/METADATA")
    expression = message_from_string(metadata.read_text(encoding="utf-8"))["License-Expression"]
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    named = {LICENSES[name] for name in re.findall(r"\(([^()]*\b(?:License|BSD)\b[^()]*)\)", notice)}
    assert set(expression.split(" AND ")) == named
    # The license of this project has a file of its own, that of htmx lies beside it.
    assert {path.stem for path in (ROOT / "licenses").iterdir()} == named - {"0BSD"}


def test_the_demonstration_runs_from_the_wheel(wheel, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(wheel), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", "-m", "openclaw_memory", "demo"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "memory/2026-05-12.md#L3" in done.stdout


# --- the sdist
@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The sdist, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(built("sdist", ROOT, folder)) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return unpacked


@pytest.mark.nightly
def test_the_sdist_holds_all_that_is_kept_in_the_repository(sdist):
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    kept = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    there = {name for name in kept.stdout.split("\0") if name and (ROOT / name).is_file()}
    assert {"SECURITY.md", "CONTRIBUTING.md", "justfile", ".ci/constraints.txt"} <= there
    assert there - files(sdist) == set()


@pytest.mark.nightly
def test_the_wheel_of_the_sdist_is_the_wheel(wheel, sdist, tmp_path):
    with zipfile.ZipFile(built("wheel", sdist, tmp_path)) as archive:
        assert {name for name in archive.namelist() if not name.endswith("/")} == files(wheel)
