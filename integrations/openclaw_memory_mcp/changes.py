"""Notify clients of changes: follow the files of a memory, and send each client the changes it asked for."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated

from openclaw_memory import Memory, OpenClawMemoryError
from openclaw_memory.errors import ConfigError
from openclaw_memory.types import MemoryFile, Progress
from openclaw_memory_mcp.resources import make_uri

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext

_log = logging.getLogger("openclaw_memory")

LOOK_SECONDS = 0.25  # how often to look whether the watcher has synced: one number is compared
# Where another process watches the files, they are listed here, which takes this share of the time at most.
SCAN_SECONDS = 2.0
SCAN_SHARE = 0.02


class Changes:
    """The clients that follow changes, and the task that finds these.

    Clients of the protocol of 2026-07-28 listen on a stream each. Older ones subscribe to addresses, and hear of new
    and removed files without asking.

    Attributes:
        step: How far the first index is, while it is being built; None at all other times.
        listen: Serves the streams.
        is_following: Whether every change from now on is noticed.
    """

    def __init__(self, memory: Memory) -> None:
        self.step: Progress | None = None
        self._memory = memory
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self.is_following = self._has_ended = False
        self._connections: dict[Connection, set[str]] = {}

    def list_subscriptions(self, context: ServerRequestContext) -> set[str]:
        """Return the addresses that an older client has subscribed to, which may be changed."""
        # The context of a handler offers no way to what lasts as long as its connection.
        connection = context.session._connection
        if connection not in self._connections:
            self._connections[connection] = set()
            connection.exit_stack.callback(self._connections.pop, connection, None)
        return self._connections[connection]

    async def follow(self) -> None:
        """Build the index where there is none, bring it up to date, and follow the files until this is cancelled."""
        try:
            await self._follow()
        finally:
            self.is_following, self._has_ended = False, True

    async def _follow(self) -> None:
        await anyio.to_thread.run_sync(self._sync, abandon_on_cancel=True)
        try:
            watcher = self._memory.watch()
        except ConfigError:  # another engine keeps the index, and follows the files itself or not at all
            watcher = None
        synced = -1 if watcher is None else watcher.syncs
        files_before, next_scan = await self._list_files({}), 0.0
        self.is_following = True
        while True:
            await anyio.sleep(LOOK_SECONDS)
            if watcher is not None and watcher.syncs != synced:
                synced = watcher.syncs
            elif (watcher is not None and watcher.is_at_work) or time.monotonic() < next_scan or not self._is_heard:
                continue
            started = time.monotonic()
            files = await self._list_files(files_before)
            next_scan = time.monotonic() + max(SCAN_SECONDS, (time.monotonic() - started) / SCAN_SHARE)
            await self._notify(files_before, files)
            files_before = files

    @property
    def _is_heard(self) -> bool:
        return bool(self._connections or self.listen._streams)

    def _sync(self) -> None:
        def show(step: Progress) -> None:
            self.step = step if is_first else None

        try:
            is_first = self._memory.status().last_sync is None
            self._memory.sync(progress=show)
        except OpenClawMemoryError as error:  # the watcher meets it too, and tries again; each answer says so
            if not self._has_ended:  # otherwise the memory was closed meanwhile, and the next sync goes on from there
                _log.warning("the index could not follow the files: %s", error)
        finally:
            self.step = None

    async def _list_files(self, before: Mapping[str, MemoryFile]) -> Mapping[str, MemoryFile]:
        try:
            scan = await anyio.to_thread.run_sync(self._memory.workspace.scan, abandon_on_cancel=True)
        except OpenClawMemoryError as error:
            _log.warning("the files could not be listed: %s", error)
            return before
        return {file.path: file for file in scan.files}

    async def _notify(self, before: Mapping[str, MemoryFile], after: Mapping[str, MemoryFile]) -> None:
        changed = {make_uri(path) for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        is_another_list = before.keys() != after.keys()
        if is_another_list:
            await self._bus.publish(ResourcesListChanged())
        for uri in sorted(changed):
            await self._bus.publish(ResourceUpdated(uri=uri))
        for connection, subscribed in list(self._connections.items()):
            if is_another_list:
                await connection.send_resource_list_changed()
            for uri in sorted(changed & subscribed):
                await connection.send_resource_updated(uri)
