"""One turn of a flush, held from its beginning to its end."""

import asyncio

import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config import EmbeddingConfig
from openclaw_memory.flush import run_flush


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path, config=MemoryConfig(embedding=EmbeddingConfig(provider="none"))) as opened:
        yield opened


def broken(*_):
    raise OSError("the disk is gone")


def test_a_turn_is_driven_to_its_end(memory):
    turns = []

    def drive(turn):
        turns.append(turn)
        turn.replied("NO_REPLY")

    assert run_flush("main", lambda: memory.flush().due(1, compacting=True), drive)
    assert [turn.outcome for turn in turns] == ["nothing"]


def test_where_there_is_none_nothing_is_driven():
    assert not run_flush("main", lambda: None, broken)


def test_a_turn_that_cannot_begin_is_said(caplog):
    assert not run_flush("tuesday", broken, broken)
    assert "the flush of session 'tuesday' failed: the disk is gone" in caplog.text


def test_of_a_turn_that_breaks_off_the_messages_are_kept(memory, caplog):
    said = [{"role": "user", "content": "The boiler code is 4711."}]
    assert run_flush("main", lambda: memory.flush().due(1, compacting=True, messages=lambda: said), broken)
    assert "4711" in (memory.workspace.root / memory.flush().log.path).read_text()
    assert "the disk is gone" in caplog.text


def test_a_model_that_gives_up_its_task_breaks_off_no_more_than_the_turn(memory):
    def cancelled(_):
        raise asyncio.CancelledError

    assert run_flush("main", lambda: memory.flush().due(1, compacting=True, messages=list), cancelled)
    assert "CancelledError" in memory.status().flush["main"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_is_not_held_up(memory, error):
    def ends(_):
        raise error

    with pytest.raises(error):
        run_flush("main", lambda: memory.flush().due(1, compacting=True), ends)
