"""Laws of transcripts: lines keep their numbers, and reading as a file grows comes to the same as reading it once."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from openclaw_memory.workspace.transcripts import read_excerpt, read_parts

DAYS = st.sampled_from(["2026-11-01T10:00:00Z", "2026-11-02T10:00:00+02:00", 1793664000, "never", None])
PROVENANCE = st.sampled_from(
    [None, {"kind": "internal_system", "sourceTool": "heartbeat"}, {"kind": "inter_session"}, "odd"]
)


@st.composite
def records(draw):
    content = draw(
        st.one_of(
            st.text(max_size=30),
            st.sampled_from(["NO_REPLY", "x" * 300, "[cron:a] b"]),
            st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": st.text(max_size=9)}), max_size=2),
            st.none(),
        )
    )
    inner = {"role": draw(st.sampled_from(["user", "assistant", "toolResult"])), "content": content}
    if provenance := draw(PROVENANCE):
        inner["provenance"] = provenance
    kind = draw(st.sampled_from(["message", "message", "message", "session", "compaction"]))
    return json.dumps({"type": kind, "timestamp": draw(DAYS), "message": inner}).encode()


junk = st.binary(max_size=40).map(lambda data: data.replace(b"\n", b" "))
files = st.lists(st.one_of(records(), records(), records(), junk), max_size=40).map(
    lambda lines: b"".join(line + b"\n" for line in lines)
)


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just("message"), st.just("user")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["type", "message", "role", "content", "text", "provenance", "kind", "sourceTool", "timestamp", "hidden", "id"]
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=12,
)  # fmt: skip

SMALL = 400  # bytes: a few lines fill a part


def lines_of(parts):
    return "".join(part.text for part in parts).split("\n")[:-1]


@given(files)
def test_a_text_has_as_many_lines_as_the_file(data):
    parts = list(read_parts(io.BytesIO(data), part_bytes=SMALL))
    assert len(lines_of(parts)) == data.count(b"\n")
    assert [part.first_line for part in parts] == [
        1 + sum(earlier.text.count("\n") for earlier in parts[:at]) for at in range(len(parts))
    ]
    assert [part.start_char for part in parts] == [
        sum(len(earlier.text) for earlier in parts[:at]) for at in range(len(parts))
    ]


@pytest.mark.fault(18)
@given(anything, anything, anything)
def test_no_record_is_too_odd_to_be_read(inner, provenance, timestamp):
    record = {"type": "message", "timestamp": timestamp}
    odd = [inner, record | {"message": inner}]
    odd += [record | {"message": {"role": "user", "content": inner, "provenance": provenance, "timestamp": inner}}]
    odd += [
        record
        | {"message": {"role": "user", "content": "x", "provenance": {"kind": "internal_system", "sourceTool": inner}}}
    ]
    data = b"".join(json.dumps(one).encode() + b"\n" for one in odd)
    assert len(lines_of(list(read_parts(io.BytesIO(data))))) == len(odd)


@given(files, st.lists(st.integers(0, 20_000), max_size=6))
def test_reading_a_file_as_it_grows_comes_to_the_same_as_reading_it_once(data, cuts):
    held = []
    mark = None
    for end in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
        for part in read_parts(io.BytesIO(data[:end]), mark, SMALL):
            held = [*(earlier for earlier in held if earlier.first_line < part.first_line), part]
            mark = str(part.mark)
    at_once = list(read_parts(io.BytesIO(data), part_bytes=SMALL))
    assert [replace(part, mark=None) for part in held] == [replace(part, mark=None) for part in at_once]
    assert [part.mark for part in held[-1:]] == [part.mark for part in at_once[-1:]]


@given(
    files,
    st.integers(1, 50),
    st.integers(1, 9),
    st.sampled_from([b"", b'{"type": "message", "role": "user", "content": "x"}']),
)
def test_an_excerpt_is_what_the_whole_text_has_in_these_lines(data, start, lines, tail):
    file = io.BytesIO(data + tail)
    whole = lines_of(list(read_parts(file)))
    excerpt, count = read_excerpt(file, "x", start, lines)
    assert excerpt.text == "\n".join(whole[start - 1 : start - 1 + lines])
    assert excerpt.end_line == (min(start - 1 + lines, len(whole)) if start <= len(whole) else start - 1)
    assert excerpt.next_start == (start + lines if start - 1 + lines < len(whole) else None)
    assert count == len(whole) or (excerpt.next_start and count > start)
