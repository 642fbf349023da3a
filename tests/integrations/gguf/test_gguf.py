"""GGUF files of provider `local`: a small model with random weights, run by llama.cpp in a process of its own."""

import shutil
import signal
import struct
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.embeddings.local import create
from openclaw_memory.errors import EmbedderError
from openclaw_memory.testing import check_embedder

TINY = tomllib.loads(Path(__file__).with_name("tiny.toml").read_text("utf-8"))
LAYOUTS = {bool: (7, "<?"), int: (4, "<I"), float: (6, "<f")}


def encode(value):
    """A value as a GGUF file has it: the number of its type, and its bytes."""
    if isinstance(value, str):
        return 8, struct.pack("<Q", len(value.encode())) + value.encode()
    if isinstance(value, list):
        return 9, struct.pack("<IQ", encode(value[0])[0], len(value)) + b"".join(encode(item)[1] for item in value)
    kind, layout = LAYOUTS[type(value)]
    return kind, struct.pack(layout, value)


def write_model(path, seed=0):
    settings, shapes = TINY["settings"], TINY["shapes"]
    head, at = struct.pack("<4sIQQ", b"GGUF", 3, len(shapes), len(settings)), 0
    for name, value in settings.items():
        kind, content = encode(value)
        head += encode(name)[1] + struct.pack("<I", kind) + content
    for name, shape in shapes.items():
        head += encode(name)[1] + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], 0, at)
        at += 4 * int(np.prod(shape))
    weights = np.random.default_rng(seed).standard_normal(at // 4, np.float32)
    path.write_bytes(head + bytes(-len(head) % 32) + weights.tobytes())
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed: pip install '.[gguf]'")
    return write_model(tmp_path_factory.mktemp("model") / "tiny.gguf")


def open_memory(folder, model):
    embedding = {"provider": "auto", "providers": {"local": {"model": str(model)}}}
    (folder / "MEMORY.md").write_text("The boiler is serviced in October.\n")
    return Memory.open(folder, config=MemoryConfig().replace({"embedding": embedding}))


def test_auto_takes_the_file_and_another_file_of_the_name_is_another_model(tmp_path, file):
    for seed in (1, 2):
        with open_memory(tmp_path, write_model(tmp_path / file.name, seed)) as memory:
            assert memory.sync().embedded == 1
            found, status = memory.search("When is the boiler serviced?"), memory.status()
            assert (found.mode, found[0].path) == ("hybrid", "MEMORY.md")
            assert (status.provider, status.model) == ("local", "tiny.gguf")


def test_without_its_packages_the_status_has_the_command_and_auto_goes_on(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with open_memory(tmp_path, write_model(tmp_path / "tiny.gguf")) as memory:
        assert memory.search("boiler")[0].path == "MEMORY.md"
        status = memory.status()
        assert status.provider == "static"
        assert 'a GGUF file needs xllamacpp: pip install ".[gguf]"' in status.unavailable["local"]


def test_the_contract_is_kept_and_threads_get_what_one_gets(file):
    embedder = create(file)
    check_embedder(embedder)
    texts = ["the boiler", "coffee", "anna drinks coffee " * 50, "", "\ud800 \x00 [CLS]"]
    alone = embedder.embed_documents(texts)
    with ThreadPoolExecutor(2) as pool:
        assert all(np.allclose(rows, alone, atol=1e-5) for rows in pool.map(embedder.embed_documents, [texts] * 6))


def test_the_prompts_are_those_of_the_models_card(tmp_path, file):
    plain, gemma = create(file), create(shutil.copy(file, tmp_path / "embeddinggemma-300M-Q8_0.gguf"))
    question, note = "task: search result | query: coffee", "title: none | text: coffee"
    assert np.allclose(gemma.embed_query("coffee"), plain.embed_query(question), atol=1e-5)
    assert np.allclose(gemma.embed_documents(["coffee"]), plain.embed_documents([note]), atol=1e-5)
    assert gemma.identity != plain.identity


def test_llama_cpp_that_dies_costs_what_it_was_at_work_on_and_ends_with_its_embedder(file):
    embedder = create(file, device="cpu")
    before = embedder.embed_query("coffee")
    embedder._loaded._process.kill()
    embedder._loaded._process.wait()
    assert np.array_equal(embedder.embed_query("coffee"), before)
    embedder._loaded._process.send_signal(signal.SIGSTOP)
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(embedder.embed_query, "coffee")
        time.sleep(0.1)
        embedder._loaded._process.kill()
        with pytest.raises(EmbedderError, match=r"llama\.cpp broke off .*started again for the next text"):
            asked.result()
    assert np.array_equal(embedder.embed_query("coffee"), before)
    embedder.close()
    assert embedder._loaded._process.poll() == 0


def test_llama_cpp_ends_with_a_program_that_is_killed(file):
    code = (
        "import sys, test_gguf as t; own = t.create(sys.argv[1]); print(own._loaded._process.pid, flush=True); input()"
    )
    command, folder = [sys.executable, "-c", code, file], Path(__file__).parent
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True, cwd=folder) as program:
        server = Path("/proc", program.stdout.readline().strip())
        assert server.exists()
        program.kill()
    assert any(not server.exists() or time.sleep(0.1) for _ in range(90))


@pytest.mark.parametrize(("size", "reason"), [(0, "failed to read magic"), (900, "exceeds remaining file size")])
def test_a_file_that_is_cut_short_is_refused_with_the_reason(tmp_path, file, size, reason):
    (tmp_path / "cut.gguf").write_bytes(file.read_bytes()[:size])
    with pytest.raises(EmbedderError, match=rf"cut\.gguf' cannot be loaded .*llama\.cpp cannot load it: .*{reason}"):
        create(tmp_path / "cut.gguf")


def test_a_file_of_the_hub_is_taken_from_its_cache_and_otherwise_asked_for(tmp_path, file):
    pytest.importorskip("huggingface_hub")
    folder = tmp_path / "models--acme--tiny"
    (folder / "snapshots/c0/q8").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs/main").write_text("c0")
    shutil.copy(file, folder / "snapshots/c0/q8/tiny.gguf")
    name, cache = "hf:acme/tiny/q8/tiny.gguf", str(tmp_path)
    assert create(name, cache_folder=cache).identity == create(file).identity
    with pytest.raises(EmbedderError, match=r"b\.gguf' is not on this machine, and the hub cannot be reached"):
        create("hf:acme/tiny/b.gguf", cache_folder=cache)
    with pytest.raises(EmbedderError, match=r"is named hf:OWNER/REPOSITORY/FILE\.gguf, not"):
        create("hf:tiny.gguf")
    with pytest.raises(EmbedderError, match=r"tiny\.gguf is run by llama\.cpp as an embedder, without backend"):
        create(file, backend="torch")
