"""What entries in LanceDB cost: start-up, adds and searches beside the memory's own documents, and the disk they take.

    python benchmarks/lancedb_entries.py [--entries 1000]

CPU time of this process, medians; the static embedder makes the vectors of both.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from openclaw_memory_lancedb import LanceEntries, MemoryEntry
from openclaw_memory_lancedb.table import FEWEST_VERSIONS, Row, Table

from openclaw_memory import Memory, load_embedder
from openclaw_memory.types import Document

WORDS = "anna bo ferry tea launch friday venue key door code salary boat garden music train letter winter".split()


def cpu(work, times=1):
    """Milliseconds of CPU that a call takes, the median of several."""
    taken = []
    for _ in range(times):
        began = time.process_time()
        work()
        taken.append(1000 * (time.process_time() - began))
    return statistics.median(taken)


def started(statement):
    code = f"import time\nbegan = time.process_time()\n{statement}\nprint(1000 * (time.process_time() - began))"
    return statistics.median(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    )


def size(folder):
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


def texts(count):
    chance = np.random.default_rng(7)
    return [" ".join(chance.choice(WORDS, 12)) + f", number {n}." for n in range(count)]


def versions(count, dims, compacts):
    """Megabytes that so many rows take on the disk, written one by one, and milliseconds of a search then."""
    with tempfile.TemporaryDirectory() as folder:
        table = Table(Path(folder), "table")
        if not compacts:
            table.compact = lambda **_: None
        chance = np.random.default_rng(7)
        began = time.process_time()
        for n in range(count):
            table.put([Row(f"{n:032x}", "0" * 64, 0.5, "fact", n)], chance.random((1, dims), np.float32), "x")
        write = 1000 * (time.process_time() - began) / count
        from openclaw_memory_lancedb.entries import wanted

        asked = chance.random(dims, np.float32)
        search = cpu(lambda: table.nearest(asked, 5, wanted(None, 0, None)), 9)
        if compacts:
            time.sleep(1.1)  # the last versions are kept for a second
            table.compact()
        return size(folder) / 1e6, write, search


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--entries", type=int, default=1000)
    count = parser.parse_args().entries
    print(f"import openclaw_memory_lancedb  {started('import openclaw_memory_lancedb'):8.1f} ms")
    print(f"import openclaw_memory          {started('import openclaw_memory'):8.1f} ms")
    print(f"import lancedb                  {started('import lancedb'):8.1f} ms")
    given = texts(count)
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder) as memory:
        entries, documents = LanceEntries(memory, load_embedder("static")), memory.documents
        entries.add("the first one, which imports LanceDB")
        documents.add([Document("first", "the first one")])
        few = given[:50]
        one, other = iter(few), iter(few)
        print(f"add one entry                   {cpu(lambda: entries.add(next(one)), len(few)):8.1f} ms")
        rival = cpu(lambda: documents.add([Document((text := next(other)), text)]), len(few))
        print(f"add one document                {rival:8.1f} ms")
        many = cpu(lambda: entries.add_many([MemoryEntry(text) for text in given])) / count
        print(f"add_many, each                  {many:8.1f} ms")
        rival = cpu(lambda: documents.add([Document(f"b{text}", text) for text in given])) / count
        print(f"add many documents, each        {rival:8.1f} ms")
        entries.search("ferry"), documents.search("ferry", 5)
        print(
            f"search {len(entries):6} entries           {cpu(lambda: entries.search('who takes the ferry?'), 25):8.1f} ms"
        )
        asked = "who takes the ferry?"
        print(f"search, filtered                {cpu(lambda: entries.search(asked, min_importance=0.5), 25):8.1f} ms")
        print(f"search documents                {cpu(lambda: documents.search(asked, 5), 25):8.1f} ms")
        print(f"sync, nothing changed           {cpu(entries.sync, 5):8.1f} ms")
        entries.close()
    for compacts in (True, False):
        disk, write, search = versions(count, 256, compacts)
        how = f"compacted every {FEWEST_VERSIONS}" if compacts else "never compacted"
        print(f"{count} writes, {how:20}: {disk:6.1f} MB, a write {write:5.1f} ms, a search {search:6.1f} ms")


if __name__ == "__main__":
    main()
