"""Show how far long work is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm.auto import tqdm

from openclaw_memory.types import Progress

# A bar that comes and goes would only flicker.
PATIENCE_SECONDS = 1.0


@contextmanager
def show_progress() -> Iterator[Callable[[Progress], None]]:
    """Show a progress bar of tqdm, except for work of less than a second.

    `with progress() as bar: memory.sync(progress=bar)` draws it while a sync runs.
    """
    with tqdm(total=1, delay=PATIENCE_SECONDS, leave=False, unit="") as bar:

        def show(step: Progress) -> None:
            bar.total = max(step.total, 1)
            bar.set_description(step.label, refresh=False)
            bar.update(step.completed - bar.n)

        yield show
