"""What the tests of every adapter need."""

import pytest

from openclaw_memory import Memories


@pytest.fixture
def users(tmp_path):
    """The memories of two people, each with a note that names the other nowhere."""
    with Memories(tmp_path / "users", embedder="hashing", max_open=4) as users:
        for name in ("anna", "bob"):
            with users.use(name) as memory:
                memory.append(f"{name} takes the ferry zebra-{name}.", date="2026-11-01")
        yield users
