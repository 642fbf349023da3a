"""Who gets in: the browser that opened the printed address, and nobody else; and whose forms are taken."""

import pytest
from starlette.testclient import TestClient

HOST, TOKEN = "127.0.0.1:8000", "a-token-for-tests"


@pytest.fixture
def stranger(app):
    return TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)


def test_the_address_lets_in_once_and_its_token_does_not_stay_in_it(stranger, app):
    answer = stranger.get("/", params={"token": TOKEN})
    assert (answer.status_code, 'url=/"' in answer.text) == (200, True)
    cookie = answer.headers["set-cookie"]
    assert all(said in cookie for said in ("HttpOnly", "SameSite=Strict", "Path=/"))
    assert TOKEN not in cookie
    assert stranger.get("/").status_code == 200
    assert stranger.get("/", params={"token": TOKEN}).status_code == 200  # the same browser, once more
    other = TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)
    assert other.get("/", params={"token": TOKEN}).status_code == 403
    assert other.get("/").status_code == 403


@pytest.mark.parametrize("token", ["", "wrong", "ü", TOKEN[:-1]])
def test_a_wrong_token_shows_nothing_and_uses_nothing_up(stranger, token):
    answer = stranger.get("/", params={"token": token})
    assert (answer.status_code, "set-cookie" in answer.headers, "Groen" in answer.text) == (403, False, False)
    assert stranger.get("/", params={"token": TOKEN}).status_code == 200


@pytest.mark.parametrize(
    "address", ["/", "/?q=key", "/note?path=MEMORY.md", "/days", "/records", "/status", "/static/style.css", "/nowhere"]
)
def test_without_the_cookie_there_is_nothing(stranger, address):
    answer = stranger.get(address, headers={"Cookie": "openclaw_memory_0=guessed"})
    assert answer.status_code == 403
    assert "openclaw-memory web" in answer.text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1", "127.0.0.1:8001", ""])
def test_a_name_of_another_host_is_refused_even_with_the_token(app, host):
    client = TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)
    assert client.get("/", params={"token": TOKEN}, headers={"Host": host}).status_code == 421
    assert client.get("/", params={"token": TOKEN}).status_code == 200


def test_a_request_that_another_site_sends_is_refused(page):
    assert page.client.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert page.client.get("/", headers={"Sec-Fetch-Site": "same-site"}).status_code == 403  # another port
    assert page.client.get("/", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


@pytest.mark.parametrize(
    ("change", "headers", "status"),
    [
        ({}, {}, 303),
        ({"form_token": "guessed"}, {}, 403),
        ({}, {"Origin": "http://evil.example"}, 403),
        ({}, {"Origin": "http://127.0.0.1:8001"}, 403),
        ({}, {"Content-Type": "text/plain"}, 415),
    ],
)
def test_a_form_counts_only_from_a_page_of_this_server(page, memory, change, headers, status):
    fields = page.form("/edit?path=MEMORY.md&start=3&end=3", "/edit") | {"text": "The key is lost.", "do": "save"}
    fields = {name: text for name, text in (fields | change).items() if text is not None}
    assert page.send("/edit", fields, **headers).status_code == status
    assert ("The key is lost." in memory.get("MEMORY.md").text) is (status == 303)


def test_a_form_that_is_too_large_or_no_text_changes_nothing(page):
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (
        page.client.post("/edit", content=b"%FF=%FF", headers={"Origin": f"http://{HOST}", **headers}).status_code
        == 400
    )
    large = b"text=" + b"a" * 4_000_001
    assert page.client.post("/edit", content=large, headers={"Origin": f"http://{HOST}", **headers}).status_code == 413
    assert page.client.put("/edit").status_code == 405


def test_no_page_may_load_or_run_what_this_server_has_not_sent(page):
    for address in ("/", "/note?path=MEMORY.md", "/static/htmx.min.js", "/nowhere"):
        headers = page.client.get(address).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
    assert page.client.get("/").headers["cache-control"] == "no-store"
