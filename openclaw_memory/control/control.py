"""List the content of a memory, and forget parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from openclaw_memory.errors import ConfigError, WriteError
from openclaw_memory.events import Location, locate_citation, observed
from openclaw_memory.types.results import ForgetPlan, ForgetReceipt, Item
from openclaw_memory.workspace.notes import MemoryPart

if TYPE_CHECKING:
    import datetime
    from collections.abc import Callable, Sequence

    from openclaw_memory.indexing.service import IndexService
    from openclaw_memory.workspace import Workspace
    from openclaw_memory.workspace.notes import Index


def _locate_forgotten(receipt: ForgetReceipt, *_: Any, **__: Any) -> list[Location]:
    planned = (step.citation for step in receipt.plan.steps)
    return [locate_citation(citation) for citation in (planned if receipt.is_dry_run else receipt.forgotten)]


def _summarize(receipt: ForgetReceipt) -> str:
    return "planned" if receipt.is_dry_run else "partly" if receipt.remaining or not receipt.is_erased else "ok"


class Control(MemoryPart):
    """List the content of a memory, and forget parts."""

    def __init__(
        self, workspace: Workspace, index: Index, service: IndexService | None, rebuild: Callable[[], object] | None
    ) -> None:
        """Take the files and the index; and how a plug-in that may keep text of its own builds its index again."""
        super().__init__(workspace, index)
        self._service, self._rebuild = service, rebuild

    @observed("inspect")
    def inspect(self) -> tuple[Item, ...]:
        """List everything that is remembered, by path, as it is on disk: each file with its kind, without its text.

        Raises:
            WorkspaceError: The folder cannot be listed.
        """
        self._index.check_open()
        from openclaw_memory.control.contents import read_contents

        items = (_mask_item(self._workspace, content.item) for content in read_contents(self._workspace)[0])
        return tuple(sorted(items, key=lambda item: item.path))

    @observed("forget", _locate_forgotten, writes=True, judge=_summarize)
    def forget(
        self,
        *,
        last_days: int | None = None,
        since: datetime.date | str | None = None,
        query: str | None = None,
        key: str | None = None,
        session: str | None = None,
        paths: Sequence[str] | None = None,
        dry_run: bool = True,
        expected: str | ForgetPlan | None = None,
        now: datetime.date | str | None = None,
    ) -> ForgetReceipt:
        """Plan a deletion, or with `dry_run=False` delete: in the files, and in every byte of the index.

        One of `last_days`, `since`, `query`, `key` and `session` says what, or `paths` alone. Notes of days, records
        and documents go as a whole; of notes, the lines below a heading with such a day, and those that say `query`; of
        transcripts, messages, each of which
        becomes a blank one with the same ids. A session goes with its transcript and snapshots, a snapshot as a whole,
        with its line in the note of its day. Lines that are of no day, such as those of MEMORY.md, are listed in
        `review`, and touched where `paths` names them.

        Args:
            last_days: Items of the last so many days; today is the first. Days are those of `sessions.timezone`.
            since: Items of this day or later.
            query: Lines with these words, in this order, in any case; not the same in other words.
            key: The records whose keys match this glob, of all types and users.
            session: The id of a session, or its key in `sessions.json`.
            paths: Files, and citations of lines, such as `MEMORY.md#L3-L4`.
            dry_run: Change nothing, and return the plan alone.
            expected: The plan that a person has seen, or its hash. A plan is done as it is; of a hash, only the
                same plan is.
            now: The moment, or the day itself, that decides which day is today.

        Returns:
            The plan, and unless `dry_run`, the items that went and those that could not.

        Raises:
            InvalidInputError: An argument has a wrong type or value.
            NotFoundError: A file or line of `paths` is not there.
            PathNotAllowedError: One of `paths` is not that of a memory file.
            ConflictError: Something has changed since the plan was made. Nothing was changed.
            ConfigError: The memory has a backend of its own.
        """
        self._index.check_open()
        if self._service is None:
            raise ConfigError("a plug-in indexes this memory: open it without the plug-in to forget something")
        from openclaw_memory.control.forgetting import apply_plan, check_expected, make_plan, read_request

        criteria = {"last_days": last_days, "since": since, "query": query, "key": key, "session": session}
        request = read_request(self._workspace, criteria, paths, now)
        if isinstance(expected, ForgetPlan):
            plan = expected
        else:
            plan = make_plan(self._workspace, request)
            check_expected(plan, expected)
        if dry_run:
            return ForgetReceipt(plan)
        receipt = apply_plan(self._workspace, self._service, plan)
        if self._rebuild is not None:
            self._rebuild()
        return receipt

    def list_sealed(self) -> list[str]:
        """List all encrypted files, whether they can be decrypted or not."""
        from openclaw_memory.control.contents import is_sealed, with_transcripts
        from openclaw_memory.conversation.snapshots import list_paths

        every = with_transcripts(self._workspace)
        listing = every.scan()
        paths = {file.path for file in listing.files} | {file.path for file in listing.skipped}
        return sorted(path for path in paths.union(list_paths(every.root)) if is_sealed(every, path))

    def reseal(self, path: str, *, sealed: bool) -> str:
        """Encrypt a file with the present key, or decrypt it; return its new path. Killed, it leaves one whole file.

        Args:
            path: A note, record, document, transcript or snapshot.
            sealed: Whether it is to be encrypted. A file that is so already stays as it is.

        Raises:
            NotFoundError, PathNotAllowedError, WorkspaceError: It cannot be read.
            SealedFileError: The index is plain, a key is not here, or the file is damaged.
            WriteError: It cannot be written.
        """
        from openclaw_memory.control.contents import locate_any, lock_any, with_transcripts
        from openclaw_memory.workspace.paths import is_of_the_agent, is_transcript

        every = with_transcripts(self._workspace)
        place = locate_any(every, path)
        if not is_transcript(place.path) and place.base != str(every.root):
            raise WriteError(f"{place.path} lies outside of the workspace, where files are only read: change it there")
        if is_of_the_agent(every.root, place.path):
            raise WriteError(f"{place.path} is the agent's own, which reads it as it is: leave it plain")
        with lock_any(every, place):
            return every.files.reseal(place, sealed=sealed).path


def _mask_item(workspace: Workspace, item: Item) -> Item:
    """Return an item with the fields that a person may have written masked by policies."""
    if not (policies := workspace.policies):
        return item
    masked = {name: policies.mask_value(getattr(item, name)) for name in ("type", "key", "source", "sensitivity")}
    return replace(item, **masked)
