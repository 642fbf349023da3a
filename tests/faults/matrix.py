"""The fault matrix: what this library must survive, whether it does, by which figures, and which tests prove it.

`python tests/faults/matrix.py` prints it as a table. With `--run` it runs the proofs first and says what held just now;
further arguments are those of pytest: `python tests/faults/matrix.py --run -n 2 -m "endurance or not endurance"`.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parents[1]


class Fault(NamedTuple):
    row: int
    fault: str
    expected: str
    figures: str  # of all cases: of those that are alike, the default run takes a sample
    proofs: tuple[str, ...] = ()
    not_built: str = ""  # the feature that this row is about, where there is none yet
    not_held: str = ""  # what gives way, where something does

    @property
    def state(self) -> str:
        if self.not_built:
            return f"not built: {self.not_built}"
        return f"not held: {self.not_held}" if self.not_held else "held"


KILLS, SYNCS = "faults/test_kills.py", "faults/test_kills_of_syncs.py"
REFUSING, MANY, DAMAGED = "faults/test_refusing.py", "faults/test_many_processes.py", "faults/test_damaged_index.py"
TALK, CLOCK, JOURNAL = "faults/test_odd_transcripts.py", "faults/test_clock.py", "workspace/test_journal.py"
UPKEEP, WATCHER, LIFE = "test_memory_upkeep.py", "indexing/test_watcher.py", "indexing/test_watcher_life.py"
READING, SYNC, STORE = "workspace/test_reading.py", "indexing/test_sync.py", "store/test_connection.py"
ENCRYPTED = "integrations/encryption/test_index_faults.py"
MADE, BAD = "faults/test_made_and_found.py", "faults/test_bad_input.py"
FLUSH, LAWS, DUE = "flush/test_flush.py", "flush/test_flush_laws.py", "conversation/test_thresholds.py"
SILENT, FENCE = "text/test_silent_reply.py", "text/test_fence.py"
SETTINGS, LONG = "faults/test_hostile_settings.py", "faults/test_long_appends.py"
FOREIGN, FORGED = "faults/test_foreign_index.py", "faults/test_forged_citations.py"
FORKS, DELETED = "faults/test_forks.py", "faults/test_deleted_text.py"
LARGE, NAMES, READERS = "faults/test_large_notes.py", "faults/test_unsafe_names.py", "faults/test_who_reads_along.py"
LINKS, ADDRESSES = "faults/test_links.py", "faults/test_hostile_services.py"
INTENT, GATE = "integrations/intent/test_detection.py", "integrations/intent/test_gate.py"
CHAIN, LOG = "integrations/audit/test_access_log.py", "integrations/audit/test_access_log_life.py"
REMOTE, SERVICES = "embeddings/test_remote.py", "faults/test_services.py"

# fmt: off
FAULTS = (
    Fault(1, "a process that writes and syncs is killed at any moment", "what it acknowledged is there, once and whole; the index is sound, and after a sync equals a fresh one",
          "a soak with 60 kills (nightly; 900 by endurance)", (
        "faults/test_soak.py::test_whatever_is_killed_nothing_acknowledged_is_lost_and_the_index_equals_a_fresh_one",
        "workspace/test_session_log.py::test_half_a_line_of_a_killed_writer_stays_apart_from_what_follows",
        "indexing/test_killed.py::test_a_killed_first_index_is_finished_by_the_next_process",
    )),
    Fault(2, "a kill at a system call of append, edit, promote, or a sync", "old or new, never mixed; the next one goes on",
          "8 calls of each writer, 3 of each of 4 kinds of sync (nightly: each)", (
        f"{KILLS}::test_a_writer_killed_at_any_system_call_leaves_the_old_file_or_the_new",
        f"{SYNCS}::test_a_sync_killed_at_any_system_call_leaves_old_rows_or_new_ones",
        "indexing/test_transcripts_sync.py::test_a_sync_that_dies_between_two_pieces_is_gone_on_with",
    )),
    Fault(3, "a kill while the index is built again", "the old index or the new one, searchable; leftovers are swept", "4 kills (100 nightly)", (
        "indexing/test_rebuild.py::test_a_rebuild_that_is_killed_at_any_point_leaves_the_old_index_or_the_new_one",
        "indexing/test_lock.py::test_a_holder_that_is_killed_keeps_nobody_waiting",
    )),
    Fault(4, "the index file is deleted", "built again with the same ids and hits", "all of 600 lines", (
        "indexing/test_sync_laws.py::test_an_index_that_was_deleted_is_built_again_with_equal_ids_and_hits",
        f"{DAMAGED}::test_an_index_that_was_deleted_in_part_or_whole_is_built_again",
        f"{UPKEEP}::test_an_index_that_was_deleted_while_it_was_open_is_built_again",
    )),
    Fault(5, "garbage in the pages of the index, a cut file, a file that is no database", "built again, the search answers right and says so; never taken for a lock",
          "every page; 6 of each of 4 kinds (100 nightly)", (
        f"{DAMAGED}::test_a_search_of_a_damaged_index_answers_right_and_says_so",
        "indexing/test_recovery.py::test_garbage_in_any_page_and_a_cut_at_any_page_are_found",
        "indexing/test_recovery.py::test_any_damage_to_the_header_is_found_or_does_no_harm",
        f"{UPKEEP}::test_a_damaged_index_is_deleted_and_built_again",
        f"{UPKEEP}::test_a_lock_is_no_damage",
        f"{STORE}::test_a_file_that_is_no_database_is_reported_as_damaged_and_left_alone",
        "cli/test_cli.py::test_a_damaged_index_is_reported_and_built_again",
    )),
    Fault(6, "one bit of the index is flipped", "no wrong text is returned", "80 bits (300 nightly), and 6 through a search (100 nightly)", (
        "indexing/test_recovery.py::test_a_flipped_bit_gives_the_right_rows_or_an_error_that_says_damage",
        f"{DAMAGED}::test_a_search_of_a_damaged_index_answers_right_and_says_so",
        "store/test_checksums.py::test_a_chunk_that_is_not_what_was_written_is_damage",
    )),
    Fault(7, "one bit of an encrypted index is flipped", "detected; in the first 16 bytes, which mean nothing, it changes nothing", "100 of 100", (
        f"{ENCRYPTED}::test_each_of_a_hundred_flipped_bits_of_an_encrypted_index_is_detected",
        f"{ENCRYPTED}::test_a_flipped_bit_at_the_beginning_of_an_encrypted_index_is_detected_or_means_nothing",
        f"{ENCRYPTED}::test_a_damaged_encrypted_index_is_built_again_with_its_key",
    )),
    Fault(8, "the disk is full", "a typed error, no half-written line or row; all goes on once there is room", "each system call; each page free in a real file system", (
        f"{REFUSING}::test_a_full_disk_is_told_at_every_size_and_nothing_is_torn",
        f"{REFUSING}::test_where_not_even_a_name_has_room_the_index_is_not_taken_for_damaged",
        f"{KILLS}::test_a_disk_that_is_full_at_any_system_call_is_a_typed_error_and_the_old_file",
        "workspace/test_edits.py::test_a_failing_disk_leaves_the_note_as_it_was",
    )),
    Fault(9, "the disk does not confirm, turned read-only, no descriptors are left", "not acknowledged; searches still answer", "each writer, 0 to 15 descriptors", (
        f"{REFUSING}::test_what_the_disk_does_not_confirm_is_not_acknowledged",
        f"{REFUSING}::test_on_a_disk_that_turned_read_only_nothing_is_acknowledged_and_searches_answer",
        f"{REFUSING}::test_without_descriptors_nothing_is_torn_and_all_goes_on_afterwards",
    )),
    Fault(10, "processes append to one file at once", "every line is kept", "2 x 20, and 8 x 500 nightly", (
        f"{JOURNAL}::test_eight_processes_that_append_at_once_lose_nothing",
        "workspace/test_session_log.py::test_processes_that_write_at_once_lose_no_entry_and_make_one_chain",
        "workspace/test_edits.py::test_processes_that_edit_one_line_at_once_lose_no_edit",
    )),
    Fault(11, "processes sync at once while others search", "no error reaches anybody", "4 x 15 syncs (60 nightly) and 2 searchers", (
        f"{MANY}::test_processes_that_sync_at_once_meet_no_error_and_searches_are_answered_all_the_while",
        f"{UPKEEP}::test_a_second_sync_waits_or_is_told",
    )),
    Fault(12, "an edit of lines that have changed meanwhile", "a conflict that shows both versions, nothing is overwritten", "each", (
        "workspace/test_edits.py::test_lines_that_changed_meanwhile_are_a_conflict_and_stay",
        "workspace/test_edits.py::test_a_conflict_shows_what_became_of_an_excerpt",
        "workspace/test_edits.py::test_a_file_that_another_program_changes_at_the_last_moment_is_left_to_it",
    )),
    Fault(13, "paths that lead out, and a symlink swapped in while reading", "refused, nothing leaks", "66 attacks, 20,000 readings during swaps", (
        f"{READING}::test_an_attack_reads_nothing",
        f"{READING}::test_a_swap_of_file_and_symlink_never_leaks",
        f"{READING}::test_a_folder_that_turns_into_a_symlink_between_two_steps_never_leaks",
        f"{BAD}::test_a_path_that_is_no_memory_file_is_refused_at_the_command_line",
    )),
    Fault(14, "hostile queries", "answered, no exception", "61 queries in 4 set-ups, and generated ones; <= 100 ms of processor time each", (
        f"{BAD}::test_a_hostile_query_is_answered_and_harms_nothing",
        f"{BAD}::test_any_text_is_a_query",
        f"{BAD}::test_a_query_of_many_characters_of_one_kind_is_answered",
        f"{BAD}::test_no_query_takes_a_tenth_of_a_second_of_a_processor",
    )),
    Fault(15, "text made to keep the masking of secrets busy", "linear", "100 KB a pattern, <= 0.1 s each", (
        "text/test_redaction.py::test_no_pattern_takes_long_by_itself",
        "text/test_redaction.py::test_no_text_takes_long",
    )),
    Fault(16, "not UTF-8, UTF-16, BOM, CRLF, NUL, U+2028, lone CR", "indexed or reported; lines end at \\n only", "each", (
        f"{SYNC}::test_a_file_that_cannot_be_decoded_is_named_and_does_not_stop_the_others",
        f"{READING}::test_text_is_decoded_and_otherwise_left_alone",
        f"{READING}::test_bytes_that_are_no_text_are_reported_with_their_place",
        f"{READING}::test_only_a_newline_ends_a_line",
        "chunking/test_chunk.py::test_only_a_line_feed_ends_a_line",
        f"{TALK}::test_a_transcript_of_another_system_is_read",
    )),
    Fault(17, "a line of 100 MB, a sparse file of 50 GB, FIFO, device, socket", "skipped and listed, not read", "< 64 MB of memory", (
        "workspace/test_scan.py::test_devices_are_skipped_and_reported",
        f"{MADE}::test_what_is_too_large_or_no_file_is_listed_and_never_read",
        f"{TALK}::test_a_transcript_that_is_none_is_listed_and_a_line_without_end_costs_no_memory",
    )),
    Fault(18, "lines of a transcript that are NaN, huge numbers, deep nesting, lone surrogates, half a line, ...", "skipped and counted, the rest is indexed", "20 kinds", (
        f"{TALK}::test_a_line_of_nonsense_is_skipped_and_counted_and_the_others_are_found",
        "workspace/test_transcripts_laws.py::test_no_record_is_too_odd_to_be_read",
    )),
    Fault(19, "100,000 files", "scanned", "100,100 (nightly)", (
        "workspace/test_scan.py::test_more_than_a_hundred_thousand_files_are_scanned",
        f"{TALK}::test_more_than_a_hundred_thousand_transcripts_are_scanned",
    )),
    Fault(20, "the embedding service: 429, 5xx, a reset, half a body", "at most three tries (five of 429 while indexing), then keywords, and status says so", "each", (
        f"{REMOTE}::test_a_failure_that_may_pass_is_tried_three_times",
        f"{REMOTE}::test_a_rate_limit_gives_documents_more_tries_and_longer_waits_than_a_query",
        f"{REMOTE}::test_a_failure_that_will_not_pass_is_tried_once",
        f"{SERVICES}::test_a_first_index_is_built_by_keywords_and_gets_its_vectors_later",
        f"{SERVICES}::test_an_index_that_is_there_keeps_its_vectors",
    )),
    Fault(21, "the embedding service hangs, or sends byte by byte", "a deadline of our own ends it", "deadline + 0.5 s", (
        f"{REMOTE}::test_a_query_and_a_request_for_documents_end_by_their_deadlines",
        f"{REMOTE}::test_all_tries_of_a_query_share_its_deadline",
        f"{SERVICES}::test_a_search_whose_service_never_answers_ends_by_its_deadline",
    )),
    Fault(22, "an embedder with too few vectors, NaN, null, other dimensions, zero vectors", "refused or made harmless, never stored", "each", (
        f"{SYNC}::test_an_embedder_that_answers_with_too_few_vectors_stores_none",
        "embeddings/test_registry.py::test_normalised_rows_are_finite_and_of_length_one_or_as_short_as_they_were",
        "store/test_vectors.py::test_vectors_of_other_dimensions_name_both_numbers_and_the_remedy",
        "store/test_vectors.py::test_a_chunk_whose_vector_is_all_zero_is_found_by_its_words_alone",
        f"{SERVICES}::test_a_first_index_is_built_by_keywords_and_gets_its_vectors_later",
        f"{SERVICES}::test_a_number_that_is_none_is_stored_as_zero",
        f"{REMOTE}::test_vectors_go_by_their_index",
        f"{REMOTE}::test_other_dimensions_than_before_are_refused",
    )),
    Fault(23, "a gzip bomb from the embedding service", "refused before it is unpacked", "300 MB, < 32 MB of memory", (
        f"{REMOTE}::test_a_compressed_answer_is_refused_and_not_unpacked",
        f"{REMOTE}::test_an_endless_answer_is_cut_off",
    )),
    Fault(24, "an editor saves by renaming, a file is deleted and restored, 10,000 events come at once", "one sync, no file is dropped", "debounce + 1 s (in the benchmarks)", (
        f"{WATCHER}::test_a_change_is_found_by_one_sync_and_the_file_is_never_dropped",
        f"{WATCHER}::test_a_burst_of_thousands_of_events_is_followed_and_so_is_what_comes_after_it",
        f"{WATCHER}::test_any_sequence_of_changes_ends_with_an_index_that_follows_the_disk",
        f"{WATCHER}::test_what_is_written_is_found_in_the_index_a_moment_later",
        f"{LIFE}::test_it_takes_over_from_a_process_that_is_killed",
    )),
    Fault(25, "indexing a file fails once", "tried again without the file being touched", "each kind of failure", (
        f"{SYNC}::test_a_file_that_fails_once_is_reported_and_retried_without_being_touched",
        f"{SYNC}::test_a_changed_file_that_fails_keeps_the_lines_it_had_until_it_can_be_read",
        f"{BAD}::test_an_unreadable_file_is_reported_and_the_others_are_found",
    )),
    Fault(26, "a clock that is 40 days or 10 years off, midnight, clocks that change", "the right day's file, scores from 0 to 1, changes are noticed", "12 moments, 4 distances", (
        f"{CLOCK}::test_files_that_were_written_at_another_time_are_followed",
        f"{CLOCK}::test_a_file_of_any_year_is_found",
        f"{CLOCK}::test_notes_of_other_days_are_found_with_a_score_that_is_one",
        f"{CLOCK}::test_a_note_is_of_the_day_of_its_reader_at_midnight_and_when_clocks_change",
        f"{CLOCK}::test_a_process_whose_clock_is_another_works_as_ever",
        f"{JOURNAL}::test_a_time_is_that_of_the_users_zone",
    )),
    Fault(27, "any history of talk, compactions, overflows, restarts, crashes, failures and damage", "one flush before each compaction, from 176,000 of 200,000 tokens on, and none besides", "20 histories on a disk (2,000 nightly)", (
        f"{LAWS}::test_every_compaction_comes_after_one_flush_of_its_cycle",
        f"{LAWS}::test_every_compaction_comes_after_one_flush_of_its_cycle_on_a_disk_in_2_000_histories",
        f"{FLUSH}::test_a_flush_is_due_at_176_000_of_200_000_tokens_and_once_a_cycle",
        f"{FLUSH}::test_what_is_marked_is_the_count_before_the_compaction",
        f"{FLUSH}::test_a_state_that_cannot_be_read_is_known_to_all_flushes_of_a_program_and_reported_once",
    )),
    Fault(28, "`NO_REPLY` in any case, streamed in any pieces", "reaches nobody", "37 forms, every split into three", (
        f"{SILENT}::test_of_a_reply_the_token_is_taken_and_whatever_declines_shows_nothing_however_it_is_split",
        f"{SILENT}::test_a_stream_shows_what_the_whole_reply_would",
    )),
    Fault(29, "a heartbeat, a program that compacts by itself, a workspace that cannot be written, an unknown window", "no flush", "each", (
        f"{FLUSH}::test_a_workspace_that_cannot_be_written_is_not_flushed",
        f"{DUE}::test_some_turns_are_never_flushed",
        f"{DUE}::test_in_a_window_that_is_unknown_no_number_of_tokens_is_a_reason_but_others_are",
    )),
    Fault(30, "a crash after a flush has written, before it was marked; two flushes at once", "no line twice, none lost", "a kill, 15 crashes at any call, 4 threads", (
        f"{FLUSH}::test_a_process_killed_after_the_note_was_written_leaves_it_and_no_mark",
        f"{FLUSH}::test_a_crash_before_midnight_writes_no_line_twice_after_it",
        f"{FLUSH}::test_flushes_at_the_same_time_lose_nothing_and_write_nothing_twice",
        f"{FLUSH}::test_flushes_of_a_program_hold_one_turn_at_a_time_and_of_several_too",
        f"{FLUSH}::test_a_cycle_that_another_process_flushes_is_taken_over_once_that_must_be_dead",
        "flush/test_note_writer.py::test_afterwards_each_line_is_in_its_place",
        f"{LAWS}::test_wherever_a_flush_dies_the_next_one_writes_no_line_twice",
    )),
    Fault(31, "a text that forges the fence of recalled memory, with look-alikes", "cannot close it", "100 texts (5,000 nightly)", (
        f"{FENCE}::test_no_text_closes_its_fence",
        f"{FENCE}::test_none_of_5_000_texts_closes_its_fence",
        f"{FENCE}::test_a_look_alike_of_the_fence_is_taken_apart",
        "tools/test_handlers.py::test_nothing_in_a_note_can_close_its_fence",
    )),
    Fault(32, "recalled memory in a transcript, or in what a model saves", "not indexed, and not written, again", "each form", (
        "indexing/test_transcripts_sync.py::test_what_was_recalled_is_never_indexed_again",
        "workspace/test_transcripts.py::test_recalled_blocks_and_secrets_are_not_shown",
        f"{FLUSH}::test_secrets_and_recalled_memory_are_not_written",
        "tools/test_handlers.py::test_what_was_recalled_is_not_written_again",
    )),
    Fault(33, "secrets with a known prefix", "masked in what is indexed, logged, shown, written by a tool, and saved by a flush", "116 formats, 0 of 15 harmless lines", (
        "faults/test_hidden_secrets.py::test_no_planted_token_is_in_the_index_its_log_of_writes_its_events_or_the_log",
        "text/test_redaction.py::test_a_token_known_by_its_prefix_is_masked",
        "text/test_redaction.py::test_every_pattern_has_a_token_that_only_it_masks",
        "text/test_redaction.py::test_what_is_no_secret_stays",
        "tools/test_handlers.py::test_secrets_are_masked_in_every_answer",
        "tools/test_handlers.py::test_secrets_are_not_written",
        f"{FLUSH}::test_secrets_and_recalled_memory_are_not_written",
    )),
    Fault(34, "passwords in plain words, in five languages", "masked", "", not_built="taken out, as its rules masked notes of people too"),
    Fault(35, "records marked never to be stored, masked or expired", "never in a search, a reading or the bytes of the index", "0 leaks", (
        "faults/test_policies_at_every_door.py::test_no_byte_of_the_index_holds_what_policies_leave_out",
        "faults/test_policies_at_every_door.py::test_nothing_that_is_shown_says_what_policies_hide",
        "faults/test_policies_at_every_door.py::test_what_is_never_to_be_stored_is_refused_everywhere",
    )),
    Fault(36, "forget the last N days", "gone from notes, index, vectors, caches and the write-ahead log", "0 traces", (
        "control/test_forgetting.py::test_the_last_days_leave_no_trace_in_any_file",
        "control/test_forgetting.py::test_after_a_crash_before_the_index_the_next_call_erases",
        "control/test_forgetting.py::test_the_receipt_says_what_could_not_go",
    )),
    Fault(37, "an access log is edited, cut or reordered", "its verification fails and names the first wrong entry; kills, full disks and 8 writers at once do not break it",
          "4 of 4, and each byte of a small log; a kill at 6 system calls (nightly: each)", (
        f"{CHAIN}::test_what_was_done_to_a_log_is_found_and_the_first_wrong_entry_named",
        f"{CHAIN}::test_each_byte_of_a_log_counts",
        f"{LOG}::test_a_writer_killed_at_any_system_call_leaves_a_log_that_is_whole",
        f"{LOG}::test_processes_that_write_at_once_make_one_chain",
        f"{LOG}::test_entries_that_a_full_disk_refuses_are_a_notice_and_a_gap",
        "integrations/audit/test_doors.py::test_a_door_that_shows_something_is_named",
    )),
    Fault(38, "no key, or a wrong one, for an encrypted index", "a typed error, nothing is changed or set aside, no text on the disk: each write of a process is looked at", "each call; a kill at 18 system calls of each change (each nightly)", (
        f"{ENCRYPTED}::test_without_its_key_a_memory_says_so_and_leaves_the_index_as_it_is",
        "integrations/encryption/test_index.py::test_without_its_key_every_call_is_an_error_that_says_so_and_nothing_changes",
        "integrations/encryption/test_index.py::test_where_the_data_folder_was_lost_nothing_is_set_aside_or_guessed",
        f"{ENCRYPTED}::test_no_text_is_written_to_any_file_by_whatever_is_done_with_an_encrypted_index",
        f"{ENCRYPTED}::test_a_change_of_the_key_killed_at_any_system_call_leaves_the_old_key_or_the_new_and_is_finished",
        f"{ENCRYPTED}::test_processes_that_open_an_index_while_its_key_changes_find_what_is_there",
        "integrations/encryption/test_index.py::test_a_plain_index_in_the_place_of_an_encrypted_one_is_an_error",
        "integrations/encryption/test_index.py::test_an_index_that_is_made_is_encrypted_where_the_settings_say_so",
        "integrations/encryption/test_notes.py::test_no_text_of_an_encrypted_note_is_in_any_file",
    )),
    Fault(39, "which language a sentence is in", "identified, in 97 of 100 by py3langid, in 85 by stop words", "100 sentences and 250 messages of five languages", (
        f"{GATE}::test_stop_words_tell_the_language_of_85_of_100_sentences",
        f"{GATE}::test_with_py3langid_it_is_97_of_100",
    )),
    Fault(40, "a model that reads intents answers nonsense, late or with injected words", "rules decide within 4 s, nothing is suggested on them, nothing is deleted", "100 malformed, late and hostile replies, 150 generated", (
        f"{INTENT}::test_a_malformed_reply_is_tried_once_more_and_then_rules_decide",
        f"{INTENT}::test_whatever_a_model_replies_the_answer_is_one_of_four_and_within_its_bounds",
        f"{INTENT}::test_a_model_that_hangs_hangs_nobody",
        f"{INTENT}::test_rules_alone_never_act_whatever_the_threshold",
        f"{INTENT}::test_no_reply_deletes_anything_or_orders_it",
    )),
    Fault(41, "`do not forget ...` in five languages", "means remember", "5 of 5", (f"{GATE}::test_do_not_forget_means_remember",)),
    Fault(42, "any sequence of writing, renaming, deleting, crashing, losing and damaging the index", "the index equals a fresh one", "120 runs of up to 20 steps", (
        "indexing/test_sync_laws.py::test_any_sequence_of_edits_and_accidents_ends_equal_to_a_fresh_index",
        "indexing/test_sync_laws.py::test_any_sequence_of_talk_and_accidents_ends_equal_to_a_fresh_index",
    )),
    Fault(43, "there is no network", "the whole suite passes", "every test: the settings of pytest block all hosts but this one", (
        f"{MADE}::test_no_test_can_reach_a_network",
    )),
    Fault(44, "others may read what is written", "files 0600, folders 0700", "every file and folder made", (
        f"{MADE}::test_whatever_is_made_is_the_owners_alone_even_without_a_umask",
        f"{STORE}::test_files_and_folders_it_makes_are_for_their_owner_alone",
        "workspace/test_session_log.py::test_only_their_owner_reads_logs",
        "store/test_rebuild.py::test_the_file_beside_is_for_its_owner_alone",
        f"{LIFE}::test_its_lock_is_for_its_owner_alone_and_free_after_its_end",
        "cli/test_cli.py::test_init_makes_a_private_workspace",
    )),
    Fault(45, "a workspace that strangers prepared, on every surface: calls, commands, tools, what adapters do of their own", "our errors only; nothing shown from outside, written outside, forged, or left hanging",
          "99 attacks on 15 surfaces, <= 15 s and 500 MB each (nightly: ten times as large, and 100 mixtures)", (
        "faults/test_hostile_workspace.py::test_a_few_attacks_come_to_nothing_on_every_surface",
        "faults/test_hostile_workspace.py::test_an_attack_comes_to_nothing_on_every_surface",
        "faults/test_hostile_workspace.py::test_a_larger_attack_comes_to_nothing_on_every_surface",
        "faults/test_hostile_workspace.py::test_attacks_that_are_planted_together_come_to_nothing",
    )),
    Fault(46, "`.memory`, or a file in it, is a link or a hard link to what is others', or an index of theirs", "neither read nor written: the index is in the user's data folder", "folder, copies, links, hard links", (
        f"{LINKS}::test_an_index_that_came_with_a_folder_is_neither_read_nor_changed",
        f"{LINKS}::test_a_linked_memory_folder_leads_nothing_there",
        f"{LINKS}::test_linked_settings_are_ignored_and_named",
        f"{LINKS}::test_a_link_in_the_place_of_a_lock_of_the_notes_is_not_written_through",
        f"{LINKS}::test_what_leads_to_the_workspace_or_to_a_named_index_may_be_links",
    )),
    Fault(47, "settings inside a workspace that are nested, endless, sparse, no file, or full of stars", "our errors and notices only; globs match in bounded time", "27 hostile files, 200 fuzzed ones (10,000 nightly), <= 50 ms each", (
        f"{SETTINGS}::test_a_memory_opens_and_answers_whatever_its_folder_says",
        f"{SETTINGS}::test_fuzzed_settings_open_within_fifty_milliseconds_of_a_processor",
        f"{SETTINGS}::test_settings_that_are_no_small_regular_file_are_not_read",
        f"{SETTINGS}::test_no_glob_keeps_a_path_waiting",
        f"{SETTINGS}::test_globs_say_what_they_say_to_git",
    )),
    Fault(48, "an index that another user made or changed: false text, rows of other notes, triggers, views", "a text is shown only if its note holds it; what a schema says is not run", "each", (
        f"{FOREIGN}::test_a_text_that_was_altered_is_not_shown",
        f"{FOREIGN}::test_the_rows_of_another_index_are_not_shown",
        f"{FOREIGN}::test_what_a_schema_says_is_not_run_by_any_connection",
        f"{FOREIGN}::test_processes_that_start_together_make_one_key",
    )),
    Fault(49, "a note, or the name of a file, forges the citations and fences that a model is shown", "true citations carry digits of the fence's random id, which no note can know", "generated texts and names (10,000 nightly), 0 taken for one", (
        f"{FORGED}::test_what_is_recalled_holds_the_citations_of_the_results_and_no_others",
        f"{FORGED}::test_no_text_and_no_name_is_taken_for_a_citation",
        f"{FORGED}::test_none_of_10_000_texts_and_names_is_taken_for_a_citation",
        f"{FORGED}::test_what_the_tools_show_is_in_a_fence_that_bears_the_citation",
        f"{FORGED}::test_no_note_is_taken_for_another_file_at_the_start_of_a_session",
        f"{FORGED}::test_a_query_engine_is_shown_lines_in_fences_that_the_lines_cannot_close",
    )),
    Fault(50, "a process is forked while threads are at work in its memory", "no child hangs; what it may not use it is told", "20 forks (1,000 nightly), 0 hung", (
        f"{FORKS}::test_no_child_that_is_forked_beside_busy_threads_hangs",
        f"{FORKS}::test_a_child_that_is_forked_in_the_midst_of_work_is_told_so_by_every_memory",
        f"{FORKS}::test_locks_that_threads_of_the_parent_hold_are_free_in_the_child",
        f"{FORKS}::test_a_child_that_ends_leaves_the_watcher_to_its_parent",
        f"{FORKS}::test_an_async_memory_has_threads_of_its_own_in_the_child",
    )),
    Fault(51, "threads append, edit, force syncs and read the status all at once", "no false damage, no closed store", "24 forced syncs of 12 threads (5,000 nightly), 0", (
        "faults/test_busy_memory.py::test_threads_that_write_force_syncs_and_read_the_status_meet_no_damage",
        "faults/test_busy_memory.py::test_a_process_whose_package_is_upgraded_meanwhile_builds_with_the_tables_that_it_knows",
    )),
    Fault(52, "a kill while a long text is appended", "all of it or nothing; of a transcript whole entries", "0.5 MB, 3 kills (nightly: 25 at 0.5 MB, 25 at 9 MB)", (
        f"{LONG}::test_a_kill_while_a_long_text_is_written_leaves_all_of_it_or_nothing",
        f"{LONG}::test_of_entries_of_a_transcript_a_kill_leaves_whole_ones",
        f"{LONG}::test_what_another_program_appends_meanwhile_is_kept",
    )),
    Fault(53, "secrets inside words of any script, of further formats, or cut by invisible characters and line ends", "masked, and look-alikes left alone", "<= 2 of 30 look-alikes", (
        "faults/test_hidden_secrets.py::test_a_hidden_token_is_masked",
        "faults/test_hidden_secrets.py::test_lookalikes_are_left_alone",
        "faults/test_hidden_secrets.py::test_no_planted_token_is_in_the_index_its_log_of_writes_its_events_or_the_log",
        "text/test_redaction.py::test_what_only_the_lists_know_is_masked_unless_that_is_switched_off",
    )),
    Fault(54, "10 MB of anything in one note, and front matter that is nested", "20,000 chunks of a file at most, and the report says how far; no deeper values are read", "10 MB: <= 15 s of processor time, <= 500 MB", (
        f"{LARGE}::test_ten_megabytes_of_anything_take_a_bounded_time_and_memory",
        f"{LARGE}::test_a_note_of_more_chunks_than_are_made_is_indexed_in_part_and_the_report_says_how_far",
        f"{LARGE}::test_values_that_are_nested_too_deeply_in_front_matter_are_not_read",
        f"{LARGE}::test_ten_megabytes_of_prose_are_indexed_whole",
    )),
    Fault(55, "several people read along, and a key or a state says so in an odd way", "what is private is hidden by tools, retrievers and stores alike; a setting fails closed", "each part of both adapters", (
        f"{READERS}::test_what_langchain_retrieves_is_what_the_readers_of_the_run_may_see",
        f"{READERS}::test_what_llama_index_retrieves_is_what_the_readers_of_the_run_may_see",
        f"{READERS}::test_a_setting_hides_what_is_private_wherever_nothing_says_that_the_user_alone_reads",
        f"{READERS}::test_a_chat_type_of_a_wrong_type_is_no_direct_chat",
        f"{READERS}::test_a_program_that_searches_by_itself_sees_everything",
        "tools/test_groups.py::test_no_search_finds_them",
    )),
    Fault(56, "names of files and text with control and bidirectional characters", "reach no terminal, `repr`, page, log or error; a name that would tear a citation apart is skipped with a word", "each", (
        f"{NAMES}::test_nothing_that_is_shown_holds_a_control_or_turns_the_text_around",
        f"{NAMES}::test_a_name_that_would_tear_a_citation_apart_is_refused_with_a_word",
        f"{NAMES}::test_every_other_name_has_a_citation_that_leads_back",
    )),
    Fault(57, "memories are opened, searched, and closed or dropped in a loop", "model, threads and descriptors are released at once", "10 times (1,000 nightly), flat", (
        "faults/test_closing.py::test_memories_that_are_opened_searched_and_ended_leave_nothing",
    )),
    Fault(58, "a file changes behind its stamps: the same size, and its mtime set back", "noticed: the ctime counts", "each kind of file", (
        "faults/test_stamps.py::test_a_change_of_equal_size_with_a_restored_mtime_is_synced",
        "faults/test_stamps.py::test_a_search_says_that_it_is_behind_such_a_change",
        "faults/test_stamps.py::test_other_rights_or_another_name_cost_no_embedding",
    )),
    Fault(59, "a password in the address of a service, a query in it, 200,000 dimensions, an endless answer", "in no message and no log; refused with a word", "each", (
        f"{ADDRESSES}::test_a_key_is_in_no_log_and_no_message",
        f"{ADDRESSES}::test_a_password_or_a_query_in_the_address_is_refused_and_not_shown",
        f"{ADDRESSES}::test_more_dimensions_than_an_index_takes_are_refused",
    )),
    Fault(60, "deleted text in the bytes of the index", "gone after the next sync, from rows, keyword index, vectors and log", "each way to delete; 25 rounds of edits (400 nightly), 0 words left", (
        f"{DELETED}::test_deleted_text_is_gone_from_the_bytes_after_the_next_sync",
        f"{DELETED}::test_a_rebuild_leaves_nothing_of_what_was_deleted_and_no_free_page",
        f"{DELETED}::test_a_document_that_was_deleted_is_gone_with_its_vector",
        f"{DELETED}::test_after_a_crash_between_deleting_and_erasing_the_next_sync_erases",
        f"{DELETED}::test_of_many_edits_no_deleted_word_is_left_anywhere",
    )),
    Fault(61, "vectors that no note needs any more", "the index stays below twice the size of a new one", "60 rounds of edits (1,500 nightly)", (
        f"{DELETED}::test_an_index_of_edited_notes_stays_below_twice_the_size_of_a_new_one",
    )),
    Fault(62, "the model that ships is exchanged for another", "found out by a SHA-256 in the code before a vector is kept", "the whole file", (
        "faults/test_planted_model.py::test_the_file_that_ships_is_the_one_that_the_package_knows",
        "faults/test_planted_model.py::test_an_exchanged_model_makes_no_vector_that_is_kept",
    )),
    Fault(63, "a record of high sensitivity is edited, lowered, stripped of its signature, put back or made a note by something else", "shown nowhere, reported with the command that signs it; no tool vouches for it", "12 forgeries, each of 19 fields", (
        "faults/test_forged_records_at_every_door.py::test_a_forged_record_is_shown_nowhere_and_reported",
        "security/test_signatures.py::test_every_field_is_signed",
        "security/test_signatures.py::test_an_older_version_that_is_put_back_is_not_taken",
        "security/test_signatures.py::test_a_forgotten_record_that_is_put_back_is_not_taken",
        "security/test_signatures.py::test_nothing_that_an_agent_calls_vouches_for_a_forged_record",
        "security/test_signatures.py::test_a_forged_expiry_has_no_record_deleted",
    )),
    Fault(64, "an agent saves a page that says `ignore all previous instructions`", "a quotation with its source; never in MEMORY.md, never a preference", "7 doors to MEMORY.md, 4 to a preference, 8 ends of lines", (
        "faults/test_outside.py::test_no_door_leads_a_page_to_long_term_memory",
        "faults/test_outside.py::test_no_door_makes_a_preference_of_a_page",
        "faults/test_outside.py::test_each_part_of_a_quotation_comes_from_outside",
        "faults/test_outside.py::test_no_end_of_a_line_of_any_reader_leads_out_of_the_quotation",
        "faults/test_outside.py::test_however_many_pages_say_so_no_value_of_the_users_changes",
    )),
    Fault(65, "whatever a file, a transcript, a citation, settings, a policy, a query or a date says", "read, or an error of ours; a time that grows with the length alone", "12 parsers, 240 texts (a million nightly), 100 KB in 0.1 s", (
        "security/test_fuzzing.py::test_any_text_is_read_or_refused_by_an_error_of_ours",
        "security/test_fuzzing.py::test_a_long_text_takes_a_microsecond_a_character_and_four_times_as_long_as_a_quarter_of_it",
    )),
)
# fmt: on


def missing(proofs: tuple[str, ...]) -> list[str]:
    """Those of `proofs`, each `file::test` below `tests/`, that are not there."""
    return [proof for proof in proofs if not is_there(*proof.split("::"))]


def is_there(file: str, test: str) -> bool:
    return test in tests_in(TESTS / file)


@cache
def tests_in(file: Path) -> set[str]:
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return set(re.findall(r"^(?:async )?def (\w+)", text, re.MULTILINE))


class Outcomes:
    """What became of each test, by `file::test` below `tests/`: a plugin of pytest."""

    def __init__(self) -> None:
        self.failed: set[str] = set()
        self.passed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = report.nodeid.partition("[")[0].removeprefix("tests/")
        if report.failed:
            self.failed.add(test)
        elif report.passed and report.when == "call":
            self.passed.add(test)

    def state(self, fault: Fault) -> str:
        if not fault.proofs:
            return fault.state
        if failed := [proof for proof in fault.proofs if proof in self.failed]:
            return f"not held: {', '.join(failed)}"
        left_out = sum(proof not in self.passed for proof in fault.proofs)
        return fault.state + (f" ({left_out} of {len(fault.proofs)} proofs not run)" if left_out else "")


def table(outcomes: Outcomes | None = None) -> str:
    states = [fault.state if outcomes is None else outcomes.state(fault) for fault in FAULTS]
    rows = [
        f"| {fault.row} | {fault.fault} | {fault.expected} | {fault.figures} | {state} |"
        for fault, state in zip(FAULTS, states, strict=True)
    ]
    kinds = [state.partition(":")[0].partition(" (")[0] for state in states]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("held", "not held", "not built"))
    return "\n".join(["| # | fault | expected | figures | state |", "|---|---|---|---|---|", *rows, "", counts])


def main(arguments: list[str]) -> int:
    if arguments[:1] != ["--run"]:
        print(table())
        return 0
    outcomes = Outcomes()
    proofs = sorted({str(TESTS / proof) for fault in FAULTS for proof in fault.proofs})
    code = pytest.main([f"--rootdir={TESTS.parent}", *proofs, *arguments[1:]], plugins=[outcomes])
    print(table(outcomes))
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
