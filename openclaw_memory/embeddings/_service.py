"""What must be known of an embedding service to ask it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from openclaw_memory.embeddings._address import public, secrets_in
from openclaw_memory.embeddings._limits import Limits

if TYPE_CHECKING:
    from openclaw_memory.embeddings._jobs import Jobs


@dataclass(frozen=True, slots=True)
class Service:
    """How a service is asked, by whatever SDK.

    `send` takes texts and whether they are questions, and returns a vector for each, in their order, as numbers or
    arrays; what it raises is read by `_failures.failure`. `endpoint` is the URL that receives the texts: a password or
    a query in it is taken out. `settings` is whatever else changes a vector (dimensions, prompts, names of extra
    headers); no secret may stand there. `secrets` (a key, values of extra headers) are shown in no message, also where
    the service repeats them.
    """

    provider: str
    model: str
    endpoint: str
    limits: Limits
    send: Callable[[list[str], bool], Awaitable[Sequence[Any]]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    close: Callable[[], Awaitable[None]] | None = None
    jobs: Jobs | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "secrets", (*self.secrets, *secrets_in(self.endpoint)))
        object.__setattr__(self, "endpoint", public(self.endpoint))

    @property
    def origin(self) -> str:
        """Who is asked, for messages."""
        return f"{self.endpoint} ({self.provider} {self.model})"
