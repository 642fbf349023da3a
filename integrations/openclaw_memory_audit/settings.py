"""Define the settings of this plug-in, `[plugins.audit]`."""

from typing import Annotated

from msgspec import Meta, Struct


class AuditConfig(Struct, frozen=True):
    """Set whether there is an access log, and how large it may be.

    Attributes:
        enabled: Whether calls are logged.
        max_bytes: A file of the log that has grown to so many bytes is followed by a new one, 4,096..1,099,511,627,776.
        keep: How many of the older files stay, the latest ones, 0..1,000,000.
        required: Whether a call that cannot be logged is refused; if not, it is made, and the status says that entries
            are missing.
    """

    enabled: bool = False
    max_bytes: Annotated[int, Meta(ge=4096, le=1 << 40)] = 4 * 1024 * 1024
    keep: Annotated[int, Meta(ge=0, le=1_000_000)] = 4
    required: bool = False
