"""Run the command `openclaw-memory` in a process of its own: `python -m openclaw_memory` does the same."""

import gc
import sys

# What a command makes is in use until its process ends. A command of a sixth of a second spends a tenth of that on
# looking for garbage among it while modules are imported, and again when the interpreter ends; neither finds any.
YOUNG_OBJECTS = 100_000


def main() -> None:
    """Run the command; see `openclaw_memory.cli.main`."""
    gc.set_threshold(YOUNG_OBJECTS)
    try:
        from openclaw_memory.cli import main as run

        run()
    except KeyboardInterrupt:  # while modules were imported: the command itself ends with the same code
        sys.stderr.write("error: interrupted\n")
        sys.exit(130)
    finally:
        gc.freeze()


if __name__ == "__main__":
    main()
