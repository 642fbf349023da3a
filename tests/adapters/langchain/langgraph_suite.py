"""A plugin of pytest: in LangGraph's tests of its own store, `InMemoryStore` is ours, over a memory of its own."""

import importlib.util
import os
import sys
import tempfile
import types
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import langgraph.store.memory
import pytest
from langchain_openclaw_memory import LangChainEmbedder, OpenClawStore

from openclaw_memory import Memory


class Store(OpenClawStore):
    """Ours, made as theirs is."""

    def __init__(self, *, index=None):
        index = index or {}
        embedder = LangChainEmbedder(index["embed"]) if index else None
        memory = Memory.open(tempfile.mkdtemp(), embedder=embedder)
        super().__init__(memory, fields=index.get("fields") or ["$"])
        self.index_config = {**index}


class Mocker:
    """What these tests use of pytest-mock."""

    def __init__(self, undo):
        self.stub, self._undo = mock.MagicMock, undo

    def spy(self, kind, name):
        patched = mock.patch.object(kind, name, autospec=True, side_effect=getattr(kind, name))
        self._undo.callback(patched.stop)
        return patched.start()


@pytest.fixture
def mocker():
    with ExitStack() as undo:
        yield Mocker(undo)


langgraph.store.memory.InMemoryStore = Store
sys.modules["pytest_mock"] = types.SimpleNamespace(MockerFixture=Mocker)
folder = Path(os.environ["LANGGRAPH_STORE_SUITE"]).parent
spec = importlib.util.spec_from_file_location("tests.embed_test_utils", folder / "embed_test_utils.py")
sys.modules["tests.embed_test_utils"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["tests.embed_test_utils"])
