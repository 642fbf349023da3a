"""Executes the notebooks and keeps what their cells put out: `python tests/notebook_runs.py [NAME ...]`.

The .py is what is edited. The .ipynb is made of it here, with outputs that are the same on every machine; what a cell
tagged `varies` puts out is kept and not compared. A cell tagged `claim` asserts what the text says of the outputs: it runs
with the others, and is in the .py alone.
"""

from __future__ import annotations

import base64
import io
import itertools
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import jupytext
import nbformat
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
SOURCES = sorted(FOLDER.glob("*.py"))
FORM = {"extension": ".py", "format_name": "percent", "custom_cell_magics": "memory_append"}
CELL_SECONDS = 120  # a cell that takes longer hangs
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
WIDGET = "application/vnd.jupyter.widget-view+json"
# What differs from run to run and tells a reader nothing.
MASKS = (
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "ADDRESS"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?"), "TIME"),
)
# Pictures are compared as small ones: fonts are drawn a little differently by every version of what draws them.
GRID = (160, 120)
MOST_SIZE_CHANGE = 0.03
MOST_DIFFERENCE = 4.0  # of 255, the root of the mean square over the grid


def source(path: Path, *, claims: bool = False) -> nbformat.NotebookNode:
    """The notebook that a .py stands for, without outputs; with the cells that check its claims, or without them."""
    notebook = jupytext.read(path, fmt=FORM)
    notebook.cells = [cell for cell in notebook.cells if claims or not _is_claim(cell)]
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.source = f"cell-{number}", cell.source.strip("\n")  # a formatter spaces a .py in its own way
    return notebook


def _is_claim(cell: nbformat.NotebookNode) -> bool:
    return "claim" in cell.metadata.get("tags", [])


def without_claims(run: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """An executed notebook as its readers get it."""
    reader = nbformat.from_dict({**run, "cells": [cell for cell in run.cells if not _is_claim(cell)]})
    counts = itertools.count(1)
    for number, cell in enumerate(reader.cells):
        cell.id = f"cell-{number}"
        if cell.cell_type == "code":
            cell.execution_count = next(counts)
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = cell.execution_count
    return reader


def kept(path: Path) -> nbformat.NotebookNode:
    """The notebook with its outputs that belongs to a .py."""
    return nbformat.read(path.with_suffix(".ipynb"), as_version=4)


def doubled(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook with every code cell twice in a row."""
    twice = nbformat.from_dict(notebook)
    twice.cells = []
    for cell in notebook.cells:
        count = 2 if cell.cell_type == "code" else 1
        twice.cells += [nbformat.from_dict({**cell, "id": f"{cell.id}-{number}"}) for number in range(count)]
    return twice


def execute(notebook: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """Run the notebook in `folder`, with this interpreter, no keys, and a network that ends at this machine."""
    run = nbformat.from_dict(notebook)
    # Without folders to look in there is only ipykernel's own kernel, which is this interpreter.
    manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    client = NotebookClient(
        run,
        km=manager,
        timeout=CELL_SECONDS,
        record_timing=False,
        coalesce_streams=True,
        store_widget_state=False,
        extra_arguments=["--log-level=ERROR"],  # it warns that its sockets on this machine are not encrypted
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env=environment(), cleanup_kc=True)
    return normalised(run)


def environment() -> dict[str, str]:
    """The variables of a kernel: no keys, no proxies, the network ends at this machine, and indexes are in its folder."""
    left_out = ("_API_KEY", "_TOKEN", "_PROXY")
    passed_on = {name: value for name, value in os.environ.items() if not name.upper().endswith(left_out)}
    paths = [str(ROOT / "tests" / "closed_network"), os.environ.get("PYTHONPATH", "")]
    return {
        **passed_on,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "HF_HUB_OFFLINE": "1",
        "TZ": "UTC",
        "OPENCLAW_MEMORY_HOME": "data",
    }


def normalised(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without what says how it was run, and without the plain form of what has one that is shown."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({"tags": cell.metadata.tags} if cell.metadata.get("tags") else {})
        if cell.cell_type == "code":  # what a progress bar leaves when it has gone shows nothing
            cell.outputs = [output for output in cell.outputs if WIDGET not in output.get("data", {})]
        for output in cell.get("outputs", []):
            if "data" in output:
                output.metadata = nbformat.from_dict({})
                if len(output.data) > 1:
                    output.data.pop("text/plain", None)
    return notebook


def differences(old: nbformat.NotebookNode, new: nbformat.NotebookNode) -> list[str]:
    """In words, where the cells of two notebooks, or what they put out, differ; cells tagged `varies` put out anything."""
    if len(old.cells) != len(new.cells):
        return [f"{len(old.cells)} cells are kept, and the source has {len(new.cells)}"]
    return [
        f"cell {number}: {difference}"
        for number, (one, other) in enumerate(zip(old.cells, new.cells, strict=True))
        for difference in _differences_of_cell(one, other)
    ]


def _differences_of_cell(old: nbformat.NotebookNode, new: nbformat.NotebookNode) -> list[str]:
    if not same_source(old, new):
        return ["its source is another"]
    if old.cell_type != "code" or "varies" in old.metadata.get("tags", []):
        return []
    if len(old.outputs) != len(new.outputs):
        return [f"{len(old.outputs)} outputs are kept, and it has {len(new.outputs)}"]
    pairs = zip(old.outputs, new.outputs, strict=True)
    return [difference for one, other in pairs for difference in _differences_of_output(one, other)]


def same_source(old: nbformat.NotebookNode, new: nbformat.NotebookNode) -> bool:
    """Whether two cells are of one type, and hold the same text and tags."""
    return (old.cell_type, old.source, old.metadata.get("tags", [])) == (
        new.cell_type,
        new.source,
        new.metadata.get("tags", []),
    )


def _differences_of_output(old: nbformat.NotebookNode, new: nbformat.NotebookNode) -> list[str]:
    if old.output_type != new.output_type:
        return [f"{old.output_type} is kept, and it is {new.output_type}"]
    one, other = contents(old), contents(new)
    if one.keys() != other.keys():
        return [f"{', '.join(one)} is kept, and it is {', '.join(other)}"]
    return [
        f"{kind} is kept as\n{_short(one[kind])}\nand is\n{_short(other[kind])}"
        for kind in one
        if not _same(kind, one[kind], other[kind])
    ]


def contents(output: nbformat.NotebookNode) -> dict[str, str]:
    """What an output shows, by its kind."""
    if output.output_type == "stream":
        return {output.name: output.text}
    if output.output_type == "error":
        return {"error": f"{output.ename}: {output.evalue}"}
    return {kind: value if isinstance(value, str) else repr(value) for kind, value in output.data.items()}


def _same(kind: str, old: str, new: str) -> bool:
    return same_picture(old, new) if kind == "image/png" else masked(old) == masked(new)


def masked(text: str) -> str:
    """The text without what differs from run to run."""
    for pattern, name in MASKS:
        text = pattern.sub(name, text)
    return text


def same_picture(old: str, new: str) -> bool:
    """Whether two PNGs in base64 look the same, but for how their fonts are drawn."""
    from PIL import Image, ImageChops, ImageStat

    one, other = (Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB") for png in (old, new))
    if any(abs(a - b) > MOST_SIZE_CHANGE * a for a, b in zip(one.size, other.size, strict=True)):
        return False
    difference = ImageChops.difference(one.resize(GRID), other.resize(GRID))
    return max(ImageStat.Stat(difference).rms) <= MOST_DIFFERENCE


def _short(text: str) -> str:
    return text if len(text) <= 2000 else f"{text[:2000]} ... ({len(text)} characters)"


def refreshed(old: nbformat.NotebookNode | None, new: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """`new` with the outputs of `old` where they show the same, so that only what has changed is written."""
    if old is None or len(old.cells) != len(new.cells):
        return new
    for one, other in zip(old.cells, new.cells, strict=True):
        compared = one.cell_type == "code" and "varies" not in other.metadata.get("tags", [])
        if compared and not _differences_of_cell(one, other):
            other.outputs = one.outputs
    return new


def main(names: list[str]) -> None:
    """Execute the notebooks of these names, or all, and write them where all their cells ran."""
    for path in SOURCES:
        if names and path.stem not in names:
            continue
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            run = without_claims(execute(source(path, claims=True), Path(folder)))
        there = path.with_suffix(".ipynb")
        nbformat.write(refreshed(kept(path) if there.exists() else None, run), there)
        print(f"{there.name}: {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
