"""Notes in several languages with an index, and lines and answers made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from index_files import write_files

from openclaw_memory import Memory

NOTES = {
    "MEMORY.md": "# Long-term memory\n\n- Ines prefers trains to planes.\n- The spare key is with Mrs. Groen.\n",
    "memory/2026-02-09.md": "# 2026-02-09\n\nTwelve gauges of the model GEO-1000 were ordered, two as spares.\n"
    "The supplier is Brandt in Kiel.\n",
    "memory/2026-02-26.md": "# 2026-02-26\n\nGauge 1 reported E_CAL_DRIFT; a white shield cured it.\n"
    "We measured tide levels with the other gauges all day.\n",
    "memory/2026-03-02.md": "# 2026-03-02\n\nThe gauges GEO-1001 and GEO-1002 drift less.\n"
    "The calibration error was discussed with the supplier.\n",
    "memory/household.md": "# Household\n\nThe boiler is serviced each October by Van Dam.\nThe router is in the attic.\n",
    "memory/server.md": "# Server\n\nThe setting retry_limit in config.toml is 7.\n"
    "We talked about settings and limits of the servers for an hour.\nparseHttpHeader() was written anew.\n",
    "memory/haus.md": "# Haus\n\nDer Ersatzschlüssel liegt bei Frau Groß.\nDie Heizung wird im Oktober gewartet.\n",
    "memory/casa.md": "# Casa\n\nLa llave de repuesto la tiene la señora Núñez.\nEl jardín se riega los martes.\n",
    "memory/zh.md": "# 家\n\n备用钥匙在王太太那里。\n锅炉每年十月检修。\n",
    "memory/ja.md": "# 家\n\n予備の鍵は田中さんが持っています。\nボイラーは十月に点検します。\n",
    "memory/ko.md": "# 집\n\n예비 열쇠는 김 여사에게 있습니다.\n보일러는 10월에 점검합니다.\n",
}


@pytest.fixture(scope="session")
def household(tmp_path_factory):
    """The folder of the notes above; nobody writes there."""
    return write_files(tmp_path_factory.mktemp("household"), NOTES)


@pytest.fixture(scope="session")
def hybrid(household, tmp_path_factory, open_store):
    store = open_store(tmp_path_factory.mktemp("hybrid") / "index.sqlite")
    with Memory.open(household, store=store) as memory:
        memory.sync()
        yield memory


@pytest.fixture(scope="session")
def keywords(household, tmp_path_factory, open_store):
    store = open_store(tmp_path_factory.mktemp("keywords") / "index.sqlite")
    with Memory.open(household, embedder=None, store=store) as memory:
        memory.sync()
        yield memory


@pytest.fixture
def remember(tmp_path, open_store):
    """Make a memory of some files: `remember({path: text}, embedder=..., config=...)`."""
    opened: list[Memory] = []

    def remember(files: dict[str, str], **parts: Any) -> Memory:
        root = write_files(tmp_path / str(len(opened)), files)
        opened.append(Memory.open(root, store=open_store(tmp_path / f"{len(opened)}.sqlite"), **parts))
        opened[-1].sync()
        return opened[-1]

    yield remember
    for memory in opened:
        memory.close()
