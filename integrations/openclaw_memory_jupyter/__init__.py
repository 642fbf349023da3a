"""Extend a notebook with `%load_ext openclaw_memory_jupyter`: magics to ask, append and look, and a progress bar.

Importing this package needs the `jupyter` extra.
"""

from importlib.util import find_spec

from openclaw_memory.errors import MissingExtraError

for _needed in ("IPython", "tqdm"):
    if find_spec(_needed) is None:
        raise MissingExtraError(f'openclaw_memory_jupyter needs {_needed}: pip install ".[jupyter]" in its checkout')

from openclaw_memory_jupyter.magics import load_ipython_extension, unload_ipython_extension  # noqa: E402
from openclaw_memory_jupyter.progress_bar import show_progress  # noqa: E402

__all__ = ["load_ipython_extension", "show_progress", "unload_ipython_extension"]
