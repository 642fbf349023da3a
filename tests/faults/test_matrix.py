"""What this library must survive, as a table: the fault, what is expected, the number, and the tests that prove it.

Below the table stand the tests that have no better place.
"""

from __future__ import annotations

import ast
import os
import socket
import stat
import tracemalloc
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pytest_socket import SocketConnectBlockedError

from openclaw_memory import Memory
from openclaw_memory.cli import main
from openclaw_memory.embeddings.hashing import HashingEmbedder

TESTS = Path(__file__).parents[1]


class Fault(NamedTuple):
    row: int
    fault: str
    expected: str
    number: str
    proofs: tuple[str, ...]


READING, SYNC, STORE = "workspace/test_reading.py", "sync/test_sync.py", "store/test_connection.py"
HERE, BAD = "faults/test_matrix.py", "faults/test_bad_input.py"
REMOTE, SERVICES = "embeddings/test_remote.py", "faults/test_services.py"

# fmt: off
FAULTS = (
    Fault(4, "the index file is deleted", "built again with the same ids and hits", "all of 600 lines, 5 answers", (
        "sync/test_sync_laws.py::test_an_index_that_was_deleted_is_built_again_with_equal_ids_and_hits",
        f"{HERE}::test_a_memory_whose_index_was_deleted_gives_the_same_answers",
        f"{BAD}::test_an_index_that_was_deleted_between_two_commands_is_made_again",
    )),
    Fault(5, "garbage in the pages of the index, a cut file, a file that is no database", "a typed error, never a wrong row; --force builds it again",
          "every page", (
        f"{STORE}::test_a_damaged_index_gives_typed_errors_and_never_wrong_rows",
        f"{STORE}::test_a_file_that_is_no_database_is_reported_as_damaged_and_left_alone",
        "test_memory.py::test_force_sets_a_damaged_index_aside_and_builds_a_new_one",
        "cli/test_cli.py::test_a_damaged_index_is_told_and_can_be_built_again",
    )),
    Fault(8, "the disk is full", "a typed error, no half-written line or row", "each write that fails", (
        f"{STORE}::test_a_full_disk_is_a_typed_error_and_nothing_is_half_written",
        "workspace/test_journal.py::test_a_failing_disk_leaves_the_note_as_it_was",
        "workspace/test_journal.py::test_a_short_write_is_taken_back",
    )),
    Fault(13, "paths that lead out, and a symlink swapped in while reading", "refused, nothing leaks", "66 attacks, 20,000 readings during swaps", (
        f"{READING}::test_an_attack_reads_nothing",
        f"{READING}::test_a_swap_of_file_and_symlink_never_leaks",
        f"{READING}::test_a_folder_that_turns_into_a_symlink_between_two_steps_never_leaks",
        f"{BAD}::test_a_path_that_is_no_memory_file_is_refused_at_the_command_line",
    )),
    Fault(14, "hostile queries", "answered, no exception", "61 queries in 4 set-ups, and generated ones", (
        f"{BAD}::test_a_hostile_query_is_answered_and_harms_nothing",
        f"{BAD}::test_any_text_is_a_query",
    )),
    Fault(16, "not UTF-8, UTF-16, BOM, CRLF, NUL, U+2028, lone CR", "indexed or reported; lines end at \\n only", "each", (
        f"{SYNC}::test_odd_bytes_are_indexed_or_reported",
        f"{SYNC}::test_a_file_that_cannot_be_decoded_is_named_and_does_not_stop_the_others",
        f"{READING}::test_text_is_decoded_and_otherwise_left_alone",
        f"{READING}::test_bytes_that_are_no_text_are_reported_with_their_place",
        f"{READING}::test_only_a_newline_ends_a_line",
        "chunking/test_chunk.py::test_only_a_line_feed_ends_a_line",
    )),
    Fault(17, "a line of 100 MB, a sparse file of 50 GB, FIFO, device, socket", "skipped and listed, not read", "< 64 MB of memory", (
        f"{SYNC}::test_special_files_are_listed_and_do_not_hold_the_sync",
        "workspace/test_files.py::test_huge_special_and_hard_linked_files_are_skipped_and_reported",
        "workspace/test_files.py::test_devices_are_skipped_and_reported",
        f"{HERE}::test_what_is_too_large_or_no_file_is_listed_and_never_read",
    )),
    Fault(19, "100,000 files", "scanned up to a cap, with a word about it", "100,000 (nightly), and a cap of a few", (
        "workspace/test_files.py::test_a_hundred_thousand_files_are_scanned_up_to_the_cap",
        "workspace/test_files.py::test_more_files_than_the_cap_are_left_out_with_one_word",
    )),
    Fault(20, "the embedding service: 429, 5xx, a reset, half a body", "at most three tries (five of 429 while indexing), then keywords, and status says so", "each", (
        f"{REMOTE}::test_a_failure_that_may_pass_is_met_with_three_tries",
        f"{REMOTE}::test_a_busy_service_is_given_more_tries_for_documents_than_for_a_question",
        f"{REMOTE}::test_a_failure_that_will_not_pass_is_met_with_one_try",
        f"{SERVICES}::test_a_first_index_is_built_by_keywords_and_gets_its_vectors_later",
        f"{SERVICES}::test_an_index_that_is_there_keeps_its_vectors",
    )),
    Fault(21, "the embedding service hangs, or sends byte by byte", "a deadline of our own ends it", "deadline + 0.5 s", (
        f"{REMOTE}::test_a_question_ends_by_its_deadline",
        f"{REMOTE}::test_the_deadline_of_a_question_holds_for_all_its_tries",
        f"{REMOTE}::test_each_request_for_documents_ends_by_its_deadline",
        f"{SERVICES}::test_a_search_ends_within_its_deadline",
    )),
    Fault(22, "an embedder with too few vectors, NaN, null, other dimensions, zero vectors", "refused or made harmless, never stored", "each", (
        f"{SYNC}::test_an_embedder_that_answers_with_too_few_vectors_stores_none",
        "embeddings/test_embeddings.py::test_non_finite_numbers_of_a_function_become_zero",
        "store/test_vectors.py::test_vectors_of_other_dimensions_name_both_numbers_and_the_remedy",
        "store/test_vectors.py::test_a_chunk_whose_vector_is_all_zero_is_found_by_its_words_alone",
        f"{SERVICES}::test_a_first_index_is_built_by_keywords_and_gets_its_vectors_later",
        f"{SERVICES}::test_a_number_that_is_none_is_stored_as_zero",
        f"{REMOTE}::test_vectors_go_by_their_index",
        f"{REMOTE}::test_other_dimensions_than_before_are_refused",
    )),
    Fault(23, "a gzip bomb from the embedding service", "refused before it is unpacked", "300 MB (nightly) and 64 MB, < 32 MB of memory", (
        f"{REMOTE}::test_a_gzip_bomb_costs_no_memory",
        "embeddings/test_http.py::test_a_compressed_answer_is_refused",
        "embeddings/test_http.py::test_an_endless_answer_is_cut_off",
    )),
    Fault(25, "indexing a file fails once", "tried again without the file being touched", "each kind of failure", (
        f"{SYNC}::test_a_file_that_fails_once_is_reported_and_retried_without_being_touched",
        f"{SYNC}::test_a_changed_file_that_fails_keeps_the_lines_it_had_until_it_can_be_read",
        f"{BAD}::test_an_unreadable_file_is_reported_and_the_others_are_found",
    )),
    Fault(42, "any sequence of writing, deleting, crashing and losing the index", "the index equals a fresh one", "60 runs of up to 20 steps", (
        "sync/test_sync_laws.py::test_any_sequence_of_edits_and_accidents_ends_equal_to_a_fresh_index",
    )),
    Fault(43, "there is no network", "the whole suite passes", "every test: the settings of pytest block all hosts but this one", (
        f"{HERE}::test_no_test_can_reach_a_network",
    )),
    Fault(44, "others may read what is written", "files 0600, folders 0700", "every file and folder made", (
        f"{HERE}::test_whatever_is_made_is_the_owners_alone_even_without_a_umask",
        f"{STORE}::test_files_and_folders_it_makes_are_for_their_owner_alone",
        "workspace/test_journal.py::test_files_and_folders_are_the_owners_alone",
        "cli/test_cli.py::test_init_makes_a_private_workspace",
    )),
)
# fmt: on


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.row} {fault.fault}")
def test_each_fault_has_tests_that_exist(fault: Fault) -> None:
    assert fault.proofs
    for proof in fault.proofs:
        file, name = proof.split("::")
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, proof


def test_each_row_stands_once_and_in_order() -> None:
    rows = [fault.row for fault in FAULTS]
    assert rows == sorted(set(rows))
    assert {4, 13, 16, 17, 25, 42, 43, 44} <= set(rows)


# --- 4: the index is deleted -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("embedder", ["static", None])
def test_a_memory_whose_index_was_deleted_gives_the_same_answers(notes: Path, embedder: Any) -> None:
    questions = ["Who has the spare key?", "GEO-1000", "E_CAL_DRIFT", "boiler", "trains"]

    def answers() -> list[Any]:
        with Memory.open(notes, embedder=embedder) as memory:
            memory.sync()
            return [memory.search(question, min_score=0.0, explain=True) for question in questions]

    before = answers()
    for file in (notes / ".memory").iterdir():
        file.unlink()
    assert answers() == before
    assert all(before)


# --- 17: what must not be read -----------------------------------------------------------------------------------------


def test_what_is_too_large_or_no_file_is_listed_and_never_read(notes: Path) -> None:
    folder = notes / "memory"
    for name, size in (("line.md", 100 * 1024**2), ("sparse.md", 50 * 1024**3)):
        with (folder / name).open("wb") as file:
            file.truncate(size)
    os.mkfifo(folder / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listening, Memory.open(notes, embedder=None) as memory:
        here = Path.cwd()
        os.chdir(folder)  # the name of a socket may hold 107 bytes
        try:
            listening.bind("socket.md")
        finally:
            os.chdir(here)
        tracemalloc.start()
        try:
            report = memory.sync()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        odd = {f"memory/{name}.md" for name in ("line", "sparse", "pipe", "socket")}
        assert {file.path for file in report.skipped} == {file.path for file in memory.status().skipped} == odd
    assert len(report.added) == 4
    assert peak < 64 * 1024**2


# --- 43: no network ----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:A test tried to use")  # what blocks the call also warns of it
def test_no_test_can_reach_a_network() -> None:
    with socket.socket() as out, pytest.raises(SocketConnectBlockedError):
        out.connect(("192.0.2.1", 80))  # an address that is kept for documentation


# --- 44: for the owner alone -------------------------------------------------------------------------------------------


def test_whatever_is_made_is_the_owners_alone_even_without_a_umask(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        with pytest.raises(SystemExit):
            main(["init", "--workspace", str(tmp_path / "new/agent")])
        with Memory.open(tmp_path / "new/agent", embedder=HashingEmbedder()) as memory:
            memory.append("The zeppelin lands on Friday.", date="2026-03-01")
            memory.sync()
            memory.sync(force=True)
            memory.search("zeppelin")
            made = sorted((tmp_path / "new").rglob("*"))
            modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [tmp_path / "new", *made]}
    finally:
        os.umask(umask)
    assert {path.name for path in made} >= {"MEMORY.md", "memory", "2026-03-01.md", ".memory", "index.sqlite"}
    assert modes == {path: 0o700 if path.is_dir() else 0o600 for path in modes}
