"""The access log: who has read and written which lines of a memory, through which door, in a chain that shows changes.

`[audit] enabled = true` turns it on. `acting_as` names who is at work; `entries` reads the log, `verify` proves it.
"""

from typing import TYPE_CHECKING

from openclaw_memory._acting import acting_as
from openclaw_memory._lazy import late_names

__all__ = ["Entry", "acting_as", "entries", "verify"]

if TYPE_CHECKING:
    from openclaw_memory.audit.chain import Entry
    from openclaw_memory.audit.reading import entries, verify

# A door names who acts, also where nothing is logged: nothing more is loaded for that.
__getattr__, __dir__ = late_names(__name__, {"chain": ("Entry",), "reading": ("entries", "verify")}, __all__)
