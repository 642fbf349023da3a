"""Which calls of a memory leave an entry in its access log, and which files each of them has read or changed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from openclaw_memory.audit.log import AccessLog
from openclaw_memory.errors import ConflictError
from openclaw_memory.records.files import path_of
from openclaw_memory.types.files import Span, cited
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.session_log import SessionLog

if TYPE_CHECKING:
    from openclaw_memory.config import AuditConfig
    from openclaw_memory.types import Document, Excerpt, Status
    from openclaw_memory.types.control import ForgetReceipt

T = TypeVar("T")
Place: TypeAlias = tuple[str, str]  # a path and its lines, "" for all of them


class _Made(NamedTuple):
    """A call: of which object, with what, and what came of it; the result is None before that."""

    part: Any
    args: tuple[Any, ...]
    options: Mapping[str, Any]
    result: Any = None

    def given(self, at: int, name: str, default: Any = None) -> Any:
        return self.args[at] if len(self.args) > at else self.options.get(name, default)


class _Rule(NamedTuple):
    """What a call leaves: the operation, and how its places and its result are known.

    `before` says where it acts before it is made, for a call that takes away what says so.
    """

    op: str
    places: Callable[[_Made], Iterable[Place]] = lambda _: ()
    writes: bool = False
    before: Callable[[_Made], Iterable[Place]] | None = None
    result: Callable[[Any], str] = lambda _: "ok"


def record_calls(memory: Any, workspace: Workspace, rules: AuditConfig) -> Workspace:
    """Have every call of a memory leave an entry, and those of its documents, records and transcripts.

    Args:
        memory: A `Memory`, which is just being put together. Without this, a call costs nothing more.
        workspace: Its files.
        rules: The settings.

    Returns:
        The files for it to use: what is written there leaves an entry, by whatever call.
    """
    log = AccessLog(workspace.root, rules)
    _watched(memory, "memory", log)
    return _RecordedWorkspace(**_fields(workspace), access_log=log)


def note(memory: Any, op: str, paths: Iterable[str]) -> None:
    """Add an entry for what was done to a memory by other ways than its calls.

    Args:
        memory: The `Memory`; nothing happens where nothing is logged.
        op: What was done.
        paths: The files that were changed.
    """
    log: AccessLog | None = vars(memory).get("access_log")
    if log is not None:
        log.write(op, [(path, "") for path in paths])


# --- how a call is watched ---------------------------------------------------------------------------------------


def _recorded(method: Callable[..., T], rule: _Rule) -> Callable[..., T]:
    """Return a method that leaves an entry in the `access_log` of its object."""

    @wraps(method)
    def call(part: Any, *args: Any, **options: Any) -> T:
        log: AccessLog = part.access_log
        made = _Made(part, args, options)
        before = [*rule.before(made)] if rule.before else None
        if rule.writes and log.required:
            log.write(rule.op, before or (), "started")
        try:
            result = method(part, *args, **options)
        except BaseException as error:
            log.write(rule.op, _of_error(error), type(error).__name__)
            raise
        log.write(
            rule.op, before if before is not None else [*rule.places(made._replace(result=result))], rule.result(result)
        )
        return result

    return call


def _recorded_iteration(method: Callable[..., Iterator[T]], rule: _Rule) -> Callable[..., Iterator[T]]:
    """Return a generator that leaves an entry of what it has yielded when it ends, or is left."""

    @wraps(method)
    def iterate(part: Any, *args: Any, **options: Any) -> Iterator[T]:
        log: AccessLog = part.access_log
        if log.required:
            log.write(rule.op, (), "started")
        places: dict[Place, None] = {}
        result = "ok"
        try:
            with closing(method(part, *args, **options)) as found:  # type: ignore[type-var]  # each is a generator
                for one in found:
                    places.update(dict.fromkeys(rule.places(_Made(part, args, options, one))))
                    yield one
        except Exception as error:
            result = type(error).__name__
            raise
        finally:
            log.write(rule.op, [*places], result)

    return iterate


def _watched(part: T, kind: str, log: AccessLog) -> T:
    if not hasattr(part, "access_log"):
        plain: Any = type(part)
        part.__class__ = _class_of(plain, kind)
        part.access_log = log  # type: ignore[attr-defined]
    return part


@cache
def _class_of(plain: type[Any], kind: str) -> type[Any]:
    """Return a class whose methods leave entries, and which is otherwise the same."""
    methods: dict[str, Any] = {}
    for name, rule in RULES[kind].items():
        method = getattr(plain, name)
        methods[name] = (_recorded_iteration if inspect.isgeneratorfunction(method) else _recorded)(method, rule)
    if kind == "memory":
        methods |= {
            "documents": property(lambda memory: _documents(plain.documents.fget(memory), memory.access_log)),
            "records": property(lambda memory: _watched(plain.records.fget(memory), "records", memory.access_log)),
            "status": wraps(plain.status)(
                lambda memory, **options: _status(plain.status(memory, **options), memory.access_log)
            ),
            "close": wraps(plain.close)(lambda memory: (plain.close(memory), memory.access_log.close())[0]),
        }
    names = {"__module__": plain.__module__, "__qualname__": plain.__qualname__, "__doc__": plain.__doc__}
    return type(plain.__name__, (plain,), {**names, **methods})


def _documents(part: Any, log: AccessLog) -> Any:
    _watched(part.files, "files", log)
    return _watched(part, "documents", log)


def _status(status: Status, log: AccessLog) -> Status:
    return replace(status, notices=(*status.notices, *log.problems()))


# --- where a call has been ---------------------------------------------------------------------------------------


def _lines(*spans: Span) -> str:
    return ",".join(f"{first}" if last <= first else f"{first}-{last}" for first, last in spans)


def _named(where: str) -> Place:
    """Return the place that a path or a citation names."""
    found = cited(where)
    return (where, "") if found is None else (found[0], _lines(*found[1]))


def _excerpt(made: _Made) -> list[Place]:
    excerpt: Excerpt = made.result
    return [(excerpt.path, _lines((excerpt.start_line, excerpt.end_line)) if excerpt.end_line else "")]


def _promoted(made: _Made) -> list[Place]:
    lines = _lines((made.given(1, "start"), made.given(2, "end")))
    return [(made.given(0, "path"), lines), *_excerpt(made)]


def _deleted(made: _Made) -> list[Place]:
    return [(made.given(0, "path"), _lines((made.given(1, "start"), made.given(2, "end"))))]


def _forgotten(made: _Made) -> list[Place]:
    receipt: ForgetReceipt = made.result
    steps = (step.citation for step in receipt.plan.steps)
    return [_named(where) for where in (steps if receipt.is_dry_run else receipt.forgotten)]


def _came_of_it(receipt: ForgetReceipt) -> str:
    return "planned" if receipt.is_dry_run else "partly" if receipt.remaining or not receipt.is_erased else "ok"


def _document(one: Document) -> Place:
    return _named(one.citation or one.path or one.id)


def _scored(made: _Made) -> list[Place]:
    return [_document(one) for one, _ in made.result]


def _by_id(made: _Made) -> list[Place]:
    ids = [one for one in made.given(0, "ids") if isinstance(one, str)]
    return [(path, "") for paths in made.part._paths(ids).values() for path in paths]


def _added(made: _Made) -> list[Place]:
    return [(path, "") for paths in made.part._paths(made.result).values() for path in paths]


def _of_record(made: _Made) -> list[Place]:
    user = made.given(2, "user_id") if made.args[2:] else made.options.get("user_id")
    return [(path_of(made.given(0, "type"), made.given(1, "key"), user), "")]


def _maybe(made: _Made) -> list[Place]:
    return [] if made.result is None else [(made.result.path, "")]


def _each(made: _Made) -> list[Place]:
    return [(one.path, "") for one in made.result]


def _paths(made: _Made) -> list[Place]:
    return [(path, "") for path in made.result]


def _of_error(error: BaseException) -> Sequence[Place]:
    return [(error.path, "")] if isinstance(error, ConflictError) and error.path else ()


# Of the calls that are not here, some read and change nothing (`sync` follows the files into the index, `status` counts
# them); others are made of these, as `SessionLog.messages` is of `entries`.
RULES: Mapping[str, Mapping[str, _Rule]] = {
    "memory": {
        "search": _Rule("search", lambda made: [(one.path, _lines(*one.spans)) for one in made.result]),
        "get": _Rule("get", _excerpt),
        "snapshot": _Rule("snapshot", _maybe, writes=True),
        "snapshots": _Rule("snapshots", _each),
        "resume": _Rule("resume"),  # the transcript that it reads has an entry of its own
        "heartbeat": _Rule(
            "heartbeat",
            lambda made: [(path, "") for task in made.result.tasks for path in task.changed],
            writes=True,
            result=lambda report: "busy" if report.is_busy else "ok",
        ),
        "inspect": _Rule("inspect"),
        "forget": _Rule("forget", _forgotten, writes=True, result=_came_of_it),
        "export": _Rule("export", lambda made: [(path, "") for path in made.result.files]),
        "import_": _Rule("import", lambda made: [(path, "") for path in made.result.added], writes=True),
    },
    "documents": {
        "add": _Rule("add", _added, writes=True),
        "get": _Rule("get", lambda made: map(_document, made.result)),
        "read": _Rule("get", lambda made: [] if made.result is None else [_document(made.result)]),
        "delete": _Rule("delete", writes=True, before=_by_id),
        "iterate": _Rule("list", lambda made: [_document(made.result)]),
        "search": _Rule("search", _scored),
        "keyword_search": _Rule("search", _scored),
        "vector_search": _Rule("search", _scored),
        "reembed": _Rule("reembed", writes=True),  # the documents that it reads have an entry of their own
    },
    "files": {
        "write_many": _Rule("add", writes=True),
        "read": _Rule("get", lambda made: [] if made.result is None else [(made.given(0, "path"), "")]),
        "delete": _Rule("delete", lambda made: [(path, "") for path in made.args if made.result], writes=True),
        "iterate": _Rule("list", lambda made: [(made.result[0], "")]),
    },
    "records": {
        "remember": _Rule("remember", lambda made: [(made.result.record.path, "")], writes=True),
        "confirm": _Rule("confirm", _maybe, writes=True),
        "forget": _Rule("forget", lambda made: _of_record(made) if made.result else [], writes=True),
        "get": _Rule("get", _maybe),
        "read": _Rule("get", _maybe),
        "find": _Rule("search", _each),
        "everything": _Rule("list", _each),
        "sign": _Rule("sign", _maybe, writes=True),
        "unsigned": _Rule("list", _each),
        "expire": _Rule("expire", _paths, writes=True),
        "decay": _Rule("decay", _paths, writes=True),
    },
}
_APPEND, _EDIT = _Rule("append", _excerpt, writes=True), _Rule("edit", _excerpt, writes=True)
_DELETE, _PROMOTE = _Rule("delete", _deleted, writes=True), _Rule("promote", _promoted, writes=True)
_BOOTSTRAP = _Rule("bootstrap", lambda made: [(file.path, "") for file in made.result.files if file.text])
_LOG_READ = _Rule("read transcript", lambda made: [(made.part.path, "")])
_LOG_WRITE = _Rule("write transcript", lambda made: [(made.part.path, "")] if made.result else [], writes=True)


@dataclass(slots=True)
class _RecordedSessionLog(SessionLog):
    access_log: AccessLog = field(kw_only=True, repr=False, compare=False)

    append_entries = _recorded(SessionLog.append_entries, _LOG_WRITE)
    entries = _recorded_iteration(SessionLog.entries, _LOG_READ)


@dataclass(frozen=True, slots=True)
class _RecordedWorkspace(Workspace):
    """The files of a memory, whose notes are written and transcripts read here, by whatever call."""

    access_log: AccessLog = field(kw_only=True, repr=False, compare=False)

    append = _recorded(Workspace.append, _APPEND)
    edit = _recorded(Workspace.edit, _EDIT)
    delete = _recorded(Workspace.delete, _DELETE)
    promote = _recorded(Workspace.promote, _PROMOTE)
    bootstrap = _recorded(Workspace.bootstrap, _BOOTSTRAP)

    def session_log(self, session_id: str, *, parent_session: str | None = None) -> SessionLog:
        log = Workspace.session_log(self, session_id, parent_session=parent_session)
        return _RecordedSessionLog(**_fields(log), access_log=self.access_log)


def _fields(part: Workspace | SessionLog) -> dict[str, Any]:
    """Return what a part of the files is made of."""
    return {spec.name: getattr(part, spec.name) for spec in fields(part) if spec.init}
