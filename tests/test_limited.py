"""What may hang is given up after its limit, and is not begun again while it goes on."""

from threading import Event, Thread, active_count, current_thread

import pytest

from openclaw_memory._limited import Limited

NAME = "limited-of-a-test"


def test_what_is_run_returns_or_raises_as_it_would_without_a_limit():
    limited = Limited(NAME)
    assert limited.run(lambda: 7, 60) == 7
    assert limited.run(lambda: current_thread().name, 60) == NAME
    with pytest.raises(ValueError, match="wrong"):
        limited.run(lambda: int("wrong"), 60)
    assert limited.run(lambda: 8, 60) == 8


def test_what_hangs_is_given_up_and_takes_one_thread_however_often_it_is_asked_for():
    limited, go_on, ran = Limited(NAME), Event(), []
    before = active_count()
    with pytest.raises(TimeoutError, match=r"more than 0\.01 s"):
        limited.run(go_on.wait, 0.01)
    for number in range(20):
        with pytest.raises(TimeoutError, match="still at work"):
            limited.run(lambda number=number: ran.append(number), 60)
    assert (ran, active_count() - before) == ([], 1)
    late = limited._thread
    go_on.set()
    late.join(60)
    assert limited.run(lambda: "again", 60) == "again"


def test_one_thing_runs_at_a_time_and_a_wait_for_it_has_its_limit_too():
    limited, begun, go_on = Limited(NAME), Event(), Event()

    def work():
        begun.set()
        return go_on.wait(60)

    other = Thread(target=limited.run, args=(work, 60))
    other.start()
    assert begun.wait(60)
    with pytest.raises(TimeoutError, match=r"more than 0\.01 s"):
        limited.run(lambda: 7, 0.01)
    go_on.set()
    other.join(60)
    assert limited.run(lambda: 7, 60) == 7
