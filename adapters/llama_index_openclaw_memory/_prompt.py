"""Share between memory blocks how text of a memory is shown."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from llama_index.core.memory.memory import BaseMemoryBlock
from pydantic import Field, PrivateAttr

from llama_index_openclaw_memory._session import get_session_key, lease_run_memory
from openclaw_memory.aio import run_in_thread
from openclaw_memory.errors import ConfigError, InvalidInputError

if TYPE_CHECKING:
    from llama_index.core.base.llms.types import ChatMessage

    from openclaw_memory import Memory

T = TypeVar("T")


class PromptBlock(BaseMemoryBlock[str]):
    """Show the text that `_compose` returns in a thread; a memory that fails costs the text, never the turn."""

    memory: Any = Field(exclude=True, repr=False)
    session_key: str | None = None

    failure: ClassVar[str] = "nothing of the memory is shown"  # what a failure costs

    _reported: set[object] = PrivateAttr(default_factory=set)

    def __deepcopy__(self, _memo: object = None) -> Self:
        return self  # like the memory, by frameworks that copy their parts

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Keep nothing: that is for `OpenClawMemoryBlock`."""

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        return await run_in_thread(self._compose, messages or [], block_kwargs.get("session_id"))

    @abstractmethod
    def _compose(self, messages: Sequence[ChatMessage], session_id: str | None) -> str:
        """Compose the text that is shown next to the messages."""

    def _read_memory(self, session_id: str | None, read: Callable[[Memory, str | None], T]) -> T | None:
        """Call `read` with the memory of this run and its session; None if the memory fails."""
        key = next((key for key in (self.session_key, session_id) if key and key.strip()), None)
        try:
            with lease_run_memory(self.memory) as memory:
                return read(memory, get_session_key(key))
        except (ConfigError, InvalidInputError):  # wrong from the first message on, whatever the memory holds
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a memory, the user's turn goes on without it
            why = f"{type(error).__name__}: {error}"
            self._warn_once(type(error), f"{self.failure}, as the memory failed: {why}")
            return None

    def _warn_once(self, topic: object, words: str) -> None:
        if topic not in self._reported:
            self._reported.add(topic)
            logging.getLogger(type(self).__module__).warning(words)
