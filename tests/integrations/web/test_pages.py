"""What the pages show of a memory, and what their forms change."""

import html
import re

import pytest
from openclaw_memory_web import app

from openclaw_memory import Memory, MemoryConfig
from openclaw_memory.config.sections import PolicyRule

HTMX = {"HX-Request": "true"}
NONSENSE = (
    "<script>alert(1)</script> <img src=x onerror=alert(1)> ![p](http://evil.example/p.png) [j](javascript:alert(1))"
)


# --- search
def test_a_search_shows_the_lines_marked_where_they_are_and_why(page):
    shown = page.get("/?q=Who+has+the+spare+key")
    assert 'href="/note?path=MEMORY.md&amp;lines=L' in shown
    assert "<mark>spare</mark> <mark>key</mark>" in shown
    assert "<mark>has</mark>" not in shown
    assert "What speaks for it" in shown
    assert '<th scope="row">keywords</th>' in shown
    assert re.search(r'role="status"[^>]*>\s*\d+ results? by \w+ search', shown)


def test_what_is_typed_is_answered_with_a_part_of_the_page(page):
    part = page.get("/?q=ferry", headers=HTMX)
    assert "<html" not in part
    assert 'id="found" hx-swap-oob="innerHTML"' in part
    assert "noon" in part
    whole = page.get("/?q=ferry", headers=HTMX | {"HX-History-Restore-Request": "true"})
    assert "<html" in whole
    assert page.read("/?q=", headers=HTMX) == ""


def test_a_phrase_is_found_and_marked(page):
    shown = page.get('/?q="the spare key" of Ann')
    assert "The <mark>spare</mark> <mark>key</mark> is with" in shown
    assert 'value="&#34;the spare key&#34; of Ann"' in shown
    assert "0 results" in page.get('/?q="spare the key"')


def test_what_holds_a_word_after_a_minus_is_not_found(page):
    assert "/note?path=memory/2026-11-20.md" in page.get("/?q=ferry+leaves")
    shown = page.get("/?q=ferry+leaves+-noon")
    assert "/note?path=memory/2026-11-20.md" not in shown
    assert "only left out" in page.get("/?q=-ferry", headers=HTMX)


# --- notes
def test_a_note_is_rendered_with_the_cited_lines_marked(page):
    shown = page.get("/note?path=MEMORY.md&lines=L3,L7")
    assert '<mark id="L3" class="line">The spare key is with Mrs. Groen.</mark>' in shown
    assert '<span id="L4" class="line">She lives at <strong>number 9</strong>.</span>' in shown
    assert '<li><mark id="L7" class="line">milk: oat</mark></li>' in shown
    assert '<h1><span id="L1" class="line">House</span></h1>' in shown
    assert 'href="/forget?paths=MEMORY.md%23L3-L3%2CL7-L7"' in shown
    assert 'start=3&amp;end=7"' in shown


def test_the_lines_of_code_tables_quotes_and_fields_are_those_of_the_file(page, memory):
    text = "---\ntags: [a]\n---\n> said\n> so\n\n```\none\ntwo\n```\n\n| a | b |\n|---|---|\n| c | d |\n\n**bold\nover two**\n"
    (memory.workspace.root / "memory/shapes.md").write_text(text, encoding="utf-8")
    shown = page.get("/note?path=memory/shapes.md&lines=L2,L5,L9")
    assert '<mark id="L2" class="line">tags: [a]</mark>' in shown
    assert '<mark id="L5" class="line">so</mark>' in shown
    assert '<span id="L8" class="line">one</span>\n<mark id="L9" class="line">two</mark>' in shown
    assert '<span id="L16" class="line"><strong>bold<br />\nover two</strong></span>' in shown


def test_nothing_in_a_note_is_markup_or_is_loaded(page, memory):
    text = f"# {NONSENSE}\n\n{NONSENSE}\n\n```\n{NONSENSE}\n```\n"
    (memory.workspace.root / "memory/evil.md").write_text(text, encoding="utf-8")
    memory.sync()
    for address in (
        "/note?path=memory/evil.md",
        "/note?path=memory/evil.md&view=lines",
        "/?q=alert+onerror",
        "/edit?path=memory/evil.md&start=1&end=3",
    ):
        shown = page.get(address)
        assert "alert" in shown
        assert shown.count("<script") == 1  # htmx, from this server
        assert not [bad for bad in ("<img", 'href="javascript', 'src="http') if bad in shown]


@pytest.mark.parametrize("read", [99, 0])
def test_a_link_to_another_note_leads_to_its_page_and_one_away_says_nothing_of_this_one(
    page, memory, monkeypatch, read
):
    monkeypatch.setattr(app, "READ", read)
    text = (
        "[near](2026-11-20.md) [up](../MEMORY.md#L3) [top](/MEMORY.md) [away](https://example.org/a.md) [it](x.pdf)\n"
        "[[links|shown]] [[links#Top]] [[Nobody & I]] [[MEMORY]] `[[MEMORY]]`\n"
    )
    (memory.workspace.root / "memory/links.md").write_text(text, encoding="utf-8")
    shown = page.get("/note?path=memory/links.md")
    assert ">shown</a>" in shown
    found = [*map(html.unescape, re.findall(r'<a href="([^"]+)" rel="noopener noreferrer">', shown))]
    top, own = "/note?path=MEMORY.md", "/note?path=memory/links.md"
    near = ["/note?path=memory/2026-11-20.md", f"{top}&lines=L3#L3", top, "https://example.org/a.md", "x.pdf"]
    assert found[:5] == near
    assert [page.place(page.client.get(link)).geturl() for link in found[5:]] == [own, own, "/?q=Nobody+%26+I", top]


@pytest.mark.parametrize(
    "address",
    [
        "/note?path=../../etc/passwd",
        "/note?path=MEMORY.md&from=x",
        "/record?path=memory/records/fact/no.md",
        "/records?type=x",
        "/forget?since=soon",
        "/edit?path=MEMORY.md&start=4&end=2",
    ],
)
@pytest.mark.sampled(3)
def test_what_is_not_there_is_said_in_a_page(page, address):
    answer = page.client.get(address)
    assert 400 <= answer.status_code < 500
    assert 'role="alert"' in answer.text


# --- changes
def test_lines_are_edited_and_the_search_finds_the_new_ones(page, memory):
    fields = page.form("/edit?path=MEMORY.md&start=3&end=3", "/edit")
    done = page.send("/edit", fields | {"text": "The spare key is with Anna.\r\nShe is mostly in.", "do": "save"})
    assert page.place(done).query == "path=MEMORY.md&lines=L3-L4"
    assert memory.get("MEMORY.md", start=3, lines=2).text == "The spare key is with Anna.\nShe is mostly in."
    memory.sync()
    assert "Anna" in page.get("/?q=spare+key")


def test_an_edit_of_lines_that_have_changed_shows_both_and_writes_nothing(page, memory):
    fields = page.form("/edit?path=MEMORY.md&start=3&end=3", "/edit")
    file = memory.workspace.root / "MEMORY.md"
    file.write_text(file.read_text().replace("Groen", "Bos"), encoding="utf-8")
    answer = page.send("/edit", fields | {"text": "The key is mine.", "do": "save"})
    assert answer.status_code == 409
    assert all(words in answer.text for words in ("Mrs. Bos", "The key is mine."))
    assert "mine" not in file.read_text()


def test_lines_are_deleted(page, memory):
    fields = page.form("/edit?path=MEMORY.md&start=3&end=4", "/edit")
    page.place(page.send("/edit", fields | {"text": "whatever", "do": "delete"}))
    assert memory.get("MEMORY.md").text == "# House\n\n\n- tea: green\n- milk: oat"


def test_forgetting_shows_its_plan_and_does_that_very_plan(page, memory):
    assert 'href="/forget?paths=MEMORY.md%23L3"' in page.get("/forget?query=Groen")  # of no day: only where it is named
    shown = page.read("/forget?paths=MEMORY.md%23L3")
    assert "Nothing was changed yet" in shown
    assert "MEMORY.md#L3 These lines go." in shown
    assert "Groen" in memory.get("MEMORY.md").text
    fields = page.form("/forget?paths=MEMORY.md%23L3", "/forget")
    receipt = page.send("/forget", fields)
    assert receipt.status_code == 200
    assert "The index holds nothing of it any more" in receipt.text
    assert "Groen" not in memory.get("MEMORY.md").text
    assert "Groen" not in page.get("/?q=spare+key")


def test_a_long_plan_is_shown_in_part_and_counted(page, memory, monkeypatch):
    monkeypatch.setattr(app, "LISTED", 2)
    for day in (17, 18, 19):
        memory.append("The ferry is late.", date=f"2026-11-{day}")
    shown = page.read("/forget?query=ferry")
    assert (shown.count("These lines go."), "and 3 more" in shown, "All of 5 places" in shown) == (2, True, True)


def test_a_plan_that_no_longer_holds_is_not_done(page, memory):
    fields = page.form("/forget?paths=MEMORY.md%23L3", "/forget")
    file = memory.workspace.root / "MEMORY.md"
    file.write_text("# New\n\nOther lines.\nMore.\n", encoding="utf-8")
    assert page.send("/forget", fields).status_code == 409
    assert "Other lines." in file.read_text()


# --- days, records, status
@pytest.mark.parametrize(("least", "read"), [(60.0, 99), (-1.0, 99), (-1.0, 0)])
def test_days_show_notes_and_sessions_the_newest_first_also_where_lists_are_kept(
    page, memory, monkeypatch, least, read
):
    for name, value in {"LONG_SECONDS": least, "LASTS": 0, "READ": read}.items():
        monkeypatch.setattr(app, name, value)
    shown = page.get("/days")
    assert shown.index("sessions/s1.jsonl") < shown.index("memory/2026-11-20.md")
    assert '<time datetime="2026-11-20">' in shown
    only = page.get("/days?kind=transcript")
    assert "sessions/s1.jsonl" in only
    assert "MEMORY.md" not in only
    memory.append("New.", date="2026-11-23")
    while "memory/2026-11-23.md" not in page.get("/days?kind=day"):
        pass
    assert "2026-11-23" not in page.get("/days?kind=note")


def test_a_record_shows_what_it_is_and_takes_another_value(page, memory):
    assert "editor.theme" in page.get("/records")
    assert "editor.theme" in page.get("/records?q=which+theme&type=preference", headers=HTMX)
    (path,) = (record.path for record in memory.records.find())
    shown = page.read(f"/record?path={path}")
    assert all(said in shown for said in ("80 %", "user", "until 20", "History", "dark"))
    fields = page.form(f"/record?path={path}", "/record")
    page.place(page.send("/record", fields | {"value": "light"}))
    record = memory.records.read(path)
    assert (record.value, record.is_confirmed, len(record.history)) == ("light", True, 2)
    assert "dark" in page.get(f"/record?path={path}")
    again = page.send("/record", fields | {"value": "blue"})
    assert again.status_code == 409
    assert memory.records.read(path).value == "light"


def test_the_status_syncs_and_runs_a_heartbeat(page, memory):
    (memory.workspace.root / "memory/new.md").write_text("Something new.\n", encoding="utf-8")
    assert "memory/new.md" in page.get("/status")
    fields = page.form("/status", "/status")
    assert "1 added" in page.send("/status", fields | {"do": "sync"}).text
    assert memory.status().heartbeat is None
    assert "findings" in page.send("/status", fields | {"do": "heartbeat"}).text
    assert memory.status().heartbeat is not None
    assert "<html" not in page.get("/status", headers=HTMX)


# --- what policies hide
def test_a_record_that_is_saved_as_it_is_shown_keeps_what_policies_hide(tmp_path, opened):
    rules = (PolicyRule("pay", "masked", pattern=r"\w+one euros"),)
    with Memory.open(tmp_path, config=MemoryConfig(policies=rules)) as memory:
        path = memory.records.remember("fact", "pay.anna", "fiftyone euros").record.path
        memory.sync()
        page = opened(memory)
        fields, shown = page.form(f"/record?path={path}", "/record"), page.get(f"/record?path={path}")
        value = html.unescape(re.search(r"<textarea[^>]*>\n(.*?)</textarea>", shown, re.DOTALL)[1])
        assert "fiftyone" not in value
        page.place(page.send("/record", fields | {"value": value}))
        assert "fiftyone euros" in (tmp_path / path).read_text(encoding="utf-8")
