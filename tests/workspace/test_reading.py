import os
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_memory.config.sections import FilesConfig
from openclaw_memory.errors import InvalidInputError, NotFoundError, PathNotAllowedError, UndecodableError
from openclaw_memory.workspace import atomic
from openclaw_memory.workspace.encodings import decode
from openclaw_memory.workspace.excerpts import make_excerpt
from openclaw_memory.workspace.files import WorkspaceFiles


def read(files, path):
    return files.read(files.locate(path))[0]


SECRET = "TOP-SECRET"

ATTACKS = [
    *"""
    ../outside/secret.md ../../outside/secret.md memory/../../outside/secret.md
    memory/../../../../../../../../etc/passwd memory/../../../../../../../../etc/passwd\0.md
    memory/sub/../../../outside/secret.md ./../outside/secret.md memory/./../../outside/./secret.md
    memory//..//..//outside//secret.md ../ws-evil/secret.md {root}-evil/secret.md {root}/../outside/secret.md
    {outside}/secret.md //{outside}/secret.md /etc/passwd /memory/a.md /proc/self/environ /proc/self/cwd/memory/a.md
    /proc/self/fd/0 /dev/stdin /dev/zero file://{outside}/secret.md ~/secret.md ~root/secret.md $HOME/secret.md
    memory/link.md memory/dangling.md memory/loop.md memory/linkdir/secret.md memory/linkdir/../linkdir/secret.md
    memory/chain/linkdir/secret.md memory/hard.md memory/pipe.md memory/socket.md memory/sparse.md memory/folder.md
    memory/folder.md/ memory/a.md/../../../outside/secret.md memory/a.md/b.md memory/%2e%2e/%2e%2e/outside/secret.md
    memory/..%2f..%2foutside/secret.md memory/．．/．．/outside/secret.md memory/‥/secret.md memory/..\u200b/secret.md
    memory\\..\\..\\outside\\secret.md ..\\outside\\secret.md C:\\outside\\secret.md memory/a.md\0 memory/a\0.md
    memory/\udcff.md Memory/a.md MEMORY/a.md memory/A.mD SOUL.md config.toml .memory/index.md memory/.memory/index.md
    memory/.openclaw-repair/a.md memory/\ud800.md . .. /
    """.split(),
    "memory/" + "x" * 300 + ".md",
    "memory/" + "x/" * 3000 + "x.md",
    "",
    " ",
]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    top = tmp_path_factory.mktemp("attacks")
    root = top / "ws"
    secrets = [top / "outside/secret.md", top / "ws-evil/secret.md", root / "SOUL.md", root / ".memory/index.md"]
    secrets += [root / "config.toml", root / "memory/.memory/index.md", root / "memory/.openclaw-repair/a.md"]
    for secret in secrets:
        secret.parent.mkdir(parents=True, exist_ok=True)
        secret.write_text(SECRET, encoding="utf-8")
    notes = root / "memory"
    (notes / "a.md").write_text("a note\n", encoding="utf-8")
    (notes / "folder.md").mkdir()
    (notes / "chain").mkdir()
    (notes / "link.md").symlink_to(top / "outside/secret.md")
    (notes / "dangling.md").symlink_to(top / "nowhere.md")
    (notes / "loop.md").symlink_to(notes / "loop.md")
    (notes / "linkdir").symlink_to(top / "outside")
    (notes / "chain/linkdir").symlink_to("../linkdir")
    (top / "outside/linked.md").write_text(SECRET, encoding="utf-8")
    os.link(top / "outside/linked.md", notes / "hard.md")
    os.mkfifo(notes / "pipe.md")
    with (notes / "sparse.md").open("wb") as sparse:
        sparse.truncate(50 * 1024**3)
    here = os.getcwd()
    os.chdir(notes)  # the path of a socket has room for 107 bytes
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.md")
    os.chdir(here)
    return root


@pytest.fixture(params=["step by step", "by name"])
def way(request, monkeypatch):
    """Both ways to open a file: with openat(2), and as on a system that lacks it."""
    monkeypatch.setattr(atomic, "CAN_WALK", request.param == "step by step")


@pytest.mark.fault(13)
@pytest.mark.usefixtures("way")
def test_an_attack_reads_nothing(root):
    assert read(WorkspaceFiles(root), "memory/a.md") == b"a note\n"
    for attack in ATTACKS:
        path = attack.replace("{root}", str(root)).replace("{outside}", str(root.parent / "outside"))
        try:
            read(WorkspaceFiles(root), path)
        except (PathNotAllowedError, NotFoundError):
            continue
        except Exception as error:
            error.add_note(f"the attack was {attack[:60]!a}")
            raise
        pytest.fail(f"{attack[:60]!a} was read")


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("memory/link.md", "symlink"),
        ("memory/linkdir/secret.md", "symlink"),
        ("memory/hard.md", "hard links"),
        ("memory/pipe.md", "not a regular file"),
        ("memory/socket.md", "not a regular file"),
        ("memory/sparse.md", r"files\.max_bytes"),
        ("memory/folder.md", "folder"),
        ("SOUL.md", r"files\.extra_paths"),
    ],
)
def test_a_refusal_says_why(root, path, word):
    with pytest.raises(PathNotAllowedError, match=word):
        read(WorkspaceFiles(root), path)


@pytest.mark.fault(13)
def test_a_swap_of_file_and_symlink_never_leaks(tmp_path):
    notes = tmp_path / "ws/memory"
    (notes / "real").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/x.md").write_text(SECRET, encoding="utf-8")
    (notes / "real/x.md").write_text("a note", encoding="utf-8")
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            (notes / "a.md").write_text("a note", encoding="utf-8")
            os.replace(notes / "a.md", notes / "x.md")
            os.symlink(tmp_path / "outside/x.md", notes / "b.md")
            os.replace(notes / "b.md", notes / "x.md")
            os.rename(notes / "real", notes / "dir")
            os.rename(notes / "dir", notes / "real")
            os.symlink(tmp_path / "outside", notes / "dir")
            os.unlink(notes / "dir")

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen = {"memory/x.md": set(), "memory/dir/x.md": set()}
    try:
        for turn in range(20_000):
            for path, outcomes in seen.items():
                try:
                    outcomes.add(read(WorkspaceFiles(tmp_path / "ws"), path))
                except (PathNotAllowedError, NotFoundError) as error:
                    outcomes.add(type(error))
            if turn > 1000 and all({b"a note", PathNotAllowedError} <= outcomes for outcomes in seen.values()):
                break
    finally:
        stop.set()
        swapper.join()
    assert {PathNotAllowedError, b"a note"} <= seen["memory/x.md"]
    assert all(outcomes <= {b"a note", PathNotAllowedError, NotFoundError} for outcomes in seen.values())


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path, monkeypatch):
    (tmp_path / "MEMORY.md").write_bytes(b"x" * 10)
    look = os.fstat

    def fstat(descriptor):
        info = look(descriptor)
        (tmp_path / "MEMORY.md").write_bytes(b"x" * 30)
        return info

    monkeypatch.setattr(os, "fstat", fstat)
    with pytest.raises(PathNotAllowedError, match="grew"):
        read(WorkspaceFiles(tmp_path, FilesConfig(max_bytes=20)), "MEMORY.md")


def test_no_descriptor_is_left_open(root):
    before = len(os.listdir("/proc/self/fd"))
    for attack in ("memory/a.md", "memory/linkdir/secret.md", "memory/pipe.md", "memory/a.md/b.md", "memory/no/x.md"):
        try:
            read(WorkspaceFiles(root), attack)
        except (PathNotAllowedError, NotFoundError):
            continue
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.fault(16)
@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\n", "plain\n"),
        (b"\xef\xbb\xbf# Title\n", "# Title\n"),
        ("# Größe 数据\n".encode("utf-16"), "# Größe 数据\n"),
        ("\ufeff# Title\n".encode("utf-16-be"), "# Title\n"),
        (b"a\r\nb\rc\n", "a\r\nb\rc\n"),
        (b"a\0b\n", "a\ufffdb\n"),
        ("a\u2028b\x0bc\x85d\x1ce\n".encode(), "a\u2028b\x0bc\x85d\x1ce\n"),
        (b"", ""),
    ],
)
def test_text_is_decoded_and_otherwise_left_alone(data, text):
    assert decode(data, "x.md") == text


@pytest.mark.fault(16)
@pytest.mark.parametrize("data", [b"\xff\xfea", b"\xff\xfe\x00\xd8a\x00", b"\xff\xc0"])
def test_bytes_that_are_no_text_are_reported_with_their_place(data):
    with pytest.raises(UndecodableError, match=r"x\.md is not text in utf-.*save it as UTF-8"):
        decode(data, "x.md")


@pytest.mark.parametrize(("start", "lines"), [(0, 1), (-3, 1), (1, 0), (1, -1), (2.5, 1), (1, "3")])
def test_a_line_number_below_one_is_an_error(start, lines):
    with pytest.raises(InvalidInputError, match="at least 1"):
        make_excerpt("x.md", "a\nb\n", start, lines)


@given(st.text(st.sampled_from("ab\n\r\u2028é😀"), max_size=60), st.integers(1, 5), st.integers(61 * 2, 200))
def test_reading_on_from_next_start_gives_the_whole_text(text, lines, chars):
    shown, start = [], 1
    while start is not None:
        excerpt = make_excerpt("x.md", text, start, lines, chars)
        shown += excerpt.text.split("\n") if excerpt.end_line >= start else []
        start = excerpt.next_start
    assert shown == text.removesuffix("\n").split("\n") or (shown, text) == ([], "")


@pytest.mark.fault(16)
@pytest.mark.parametrize(
    ("text", "lines"),
    [("", 0), ("\n", 1), ("a", 1), ("a\n", 1), ("a\n\n", 2), ("a\r\nb\r\n", 2), ("a\rb\u2028c\x0bd\x85e", 1)],
)
def test_only_a_newline_ends_a_line(text, lines):
    assert make_excerpt("x.md", text).end_line == lines
