"""Define the settings of this plug-in, `[plugins.audit]`."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class AuditConfig:
    """Set whether there is an access log, and how large it may be.

    Attributes:
        enabled: Whether calls are logged.
        max_bytes: A file of the log that has grown to so many bytes is followed by a new one, 4,096..1,099,511,627,776.
        keep: How many of the older files stay, the latest ones, 0..1,000,000.
        required: Whether a call that cannot be logged is refused; if not, it is made, and the status says that entries
            are missing.
    """

    enabled: bool = False
    max_bytes: int = field(default=4 * 1024 * 1024, metadata={"range": (4096, 1 << 40)})
    keep: int = field(default=4, metadata={"range": (0, 1_000_000)})
    required: bool = False
