"""The table of doors is whole: each public method has a row, and so has each program that does more than call these."""

import ast
import re
from collections.abc import Iterator

import pytest
from faults.doors import KEEPING, SHOWING, WRITING
from test_architecture import CORE, EDGES, shown, tree

from openclaw_memory import Memory
from openclaw_memory.control.control import Control
from openclaw_memory.documents import Documents
from openclaw_memory.documents.files import DocumentFiles
from openclaw_memory.records import Records
from openclaw_memory.sessions import Sessions
from openclaw_memory.workspace.notes import Notes

# Methods by which no text goes in or out.
WITHOUT_TEXT = {
    Memory: "append close delete documents edit embedder for_agent index_path open records sync watch",
    Notes: "sync_soon delete",
    Sessions: "",
    Control: "list_sealed reseal",
    Documents: "Filter compile_filter count_missing_vectors delete get_collection get_vector_identity get_vectors list_problems rebuild_vectors",
    DocumentFiles: "delete search sync",
    # `list_all` is for upkeep; what `sign` and `list_unsigned` show has a test of its own.
    Records: "expire forget list_all list_unsigned sign",
}
ROWS = {row.partition(",")[0] for row in (*SHOWING, *WRITING)}

PARTS = [CORE / f"{name}.py" for name in ("aio", "display", "memories", "runs")]
PROGRAMS = [*EDGES, *(CORE / "cli").rglob("*.py"), *(CORE / "tools").rglob("*.py"), *PARTS]
# Those that read files, or take texts of a workspace: the row of each, or what it reads.
FURTHER = {
    "adapters/langchain_openclaw_memory/_flush.py": "LangChain flush",
    "adapters/llama_index_openclaw_memory/_flush_model.py": "LlamaIndex memory block",
    "integrations/openclaw_memory_hooks/background.py": "command hook",
    "integrations/openclaw_memory_hooks/claude_code.py": "command hook",
    "integrations/openclaw_memory_hooks/command.py": "command hook",
    "integrations/openclaw_memory_hooks/opencode.py": "command hook, of OpenCode",
    "integrations/openclaw_memory_migrate/migration.py": "migrate, notes",
    "integrations/openclaw_memory_migrate/plan.py": "migrate, items",
    "integrations/openclaw_memory_migrate/policies.py": "migrate, items",
    "integrations/openclaw_memory_migrate/snapshots.py": "migrate, a talk",
    "openclaw_memory/tools/handlers.py": "tool memory_get",
    "openclaw_memory/tools/visibility.py": "tool recall",
}
NOT_SHOWN = {
    "integrations/openclaw_memory_audit/command.py": "its own log",
    "integrations/openclaw_memory_audit/head.py": "its own log",
    "integrations/openclaw_memory_audit/log.py": "its own log",
    "integrations/openclaw_memory_audit/reading.py": "its own log",
    "integrations/openclaw_memory_batch/embedder.py": "its own jobs",
    "integrations/openclaw_memory_encryption/keys.py": "keys",
    "integrations/openclaw_memory_gguf/__init__.py": "the file of a model",
    "integrations/openclaw_memory_intent/languages.py": "its own phrases",
    "integrations/openclaw_memory_lab/evaluation.py": "notes, to find quotations in them",
    "integrations/openclaw_memory_mcp/tool_facts.py": "its own schemas",
    "integrations/openclaw_memory_mcp/transports.py": "standard input",
    "integrations/openclaw_memory_postgres/connections.py": "its own SQL",
    "integrations/openclaw_memory_postgres/notes.py": "notes, to copy them as they are",
    "integrations/openclaw_memory_postgres/search.py": "its own SQL",
    "integrations/openclaw_memory_qmd/backend.py": "its copies",
    "integrations/openclaw_memory_qmd/copies.py": "notes as they are indexed",
    "integrations/openclaw_memory_qmd/program.py": "a pipe",
    "openclaw_memory/cli/__init__.py": "the null device",
    "openclaw_memory/cli/doctor.py": "the mounts of the system",
    "openclaw_memory/cli/find_workspace.py": "settings",
}

# What of a workspace is no text: names as policies let them be shown, folders, counts.
NO_TEXT = {"root", "scan", "find_note", "get_time", "suggest_setup", "can_be_written", "sessions", "locate"}
NO_TEXT |= {"files.find", "files.find_long_term", "files.codec"}
# Workspaces that are paths, and objects whose `read` is a public method, or reads no file.
PATHS = {"self.workspace", "place.workspace", "settings.workspace", "key.workspace", "self._key.workspace"}
PATHS |= {"locate_agent(self.agent).workspace", "user.workspaces"}
MAY_READ = re.compile(r"workspace|\b(?:open|read|fdopen|FileIO|read_bytes|read_text)\(")
READING = {"open", "read", "fdopen", "FileIO", "read_bytes", "read_text"}
METHODS = {"memory.records", "memory.documents", "self._memory.documents.files"}


@pytest.mark.parametrize("owner", WITHOUT_TEXT, ids=lambda owner: owner.__name__)
def test_every_public_method_has_a_row_or_is_without_text(owner):
    public = {name for name in dir(owner) if not name.startswith("_")}
    rows = {name for name in public if f"{owner.__name__}.{name}" in ROWS}
    assert public - rows == set(WITHOUT_TEXT[owner].split())


def test_programs_without_a_row_reach_the_texts_of_a_memory_by_public_methods_alone():
    some = (path for path in PROGRAMS if MAY_READ.search(path.read_text(encoding="utf-8")))
    found = {shown(path): lines for path in some if (lines := [*reads(tree(path))])}
    assert {path: lines for path, lines in found.items() if path not in FURTHER | NOT_SHOWN} == {}, (
        "call methods of Memory, or give this program a row of its own in doors.py, and name it here"
    )
    assert (FURTHER | NOT_SHOWN).keys() - found.keys() == set(), "these are like others now: take them off the list"
    assert set(FURTHER.values()) <= SHOWING.keys() | WRITING.keys() | KEEPING.keys()


@pytest.mark.parametrize(
    ("code", "is_found"),
    [
        ("(memory.workspace.root / path).read_text()", True),
        ("open(path)", True),
        ("(root / path).open()", True),
        ("Memory.open(folder)", False),
        ("memory.workspace.read(path)", True),
        ("workspace = memory.workspace; workspace.read_excerpt(path)", True),
        ("notes = memory.workspace; notes.read_excerpt(path)", True),
        ("show(memory.workspace)", True),
        ("self._memory.workspace.files.read(place)", True),
        ("from openclaw_memory.workspace import SafeFolder; SafeFolder(root).read(path)", True),
        ("[file.path for file in memory.workspace.scan().files]", False),
        ("memory.get(path); memory.records.read(path); memory.documents.files.read(path)", False),
    ],
)
def test_a_program_that_reads_is_known(code, is_found):
    assert bool([*reads(ast.parse(code))]) is is_found


def reads(module: ast.Module) -> Iterator[str]:
    """Where a program reads a file, or takes more of a workspace than names, folders and counts."""
    names = [node for node in ast.walk(module) if isinstance(node, ast.alias | ast.Name)]
    has_folders = any("SafeFolder" in {getattr(node, "name", ""), getattr(node, "id", "")} for node in names)
    parents = {child: node for node in ast.walk(module) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in READING and is_read(ast.unparse(node.func), has_folders):
                yield f"line {node.lineno}: {ast.unparse(node)[:100]}"
        elif is_workspace(node) and (taken := taken_of(node, parents)) not in NO_TEXT:
            yield f"line {node.lineno}: {ast.unparse(node)}.{taken}"


def is_read(function: str, has_folders: bool) -> bool:
    owner, _, name = function.rpartition(".")
    if name == "open":  # of a path; a memory is opened too
        return owner in {"", "io", "os"} or bool(re.search("path|file|root|/", owner))
    is_method = name == "read" and owner != "os"
    return (has_folders and owner not in METHODS) if is_method else bool(owner)


def is_workspace(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in {"workspace", "_workspace"} and ast.unparse(node) not in PATHS
    return isinstance(node, ast.Name) and node.id == "workspace"


def taken_of(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    """What is taken of a workspace; its root where a variable of that name is all that is made of it, or is handed on."""
    above = parents[node]
    if isinstance(above, ast.Attribute):
        further = parents[above]
        is_deeper = above.attr == "files" and isinstance(further, ast.Attribute)
        return f"files.{further.attr}" if is_deeper else above.attr
    is_kept = isinstance(above, ast.Assign) and "workspace" in ast.unparse(above.targets[0])
    return "root" if is_kept or isinstance(node, ast.Name) else ""
