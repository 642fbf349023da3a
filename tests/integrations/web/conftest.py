"""What the tests of the page share: a memory with something of every kind, and a browser that has opened the address."""

import html
import re
from urllib.parse import urlsplit

import pytest

pytest.importorskip("starlette")

from openclaw_memory_web import create_app
from starlette.testclient import TestClient

from openclaw_memory import Memory

HOST = "127.0.0.1:8000"
TOKEN = "a-token-for-tests"


@pytest.fixture
def memory(tmp_path):
    folder = tmp_path / "house"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text(
        "# House\n\nThe spare key is with Mrs. Groen.\nShe lives at **number 9**.\n\n- tea: green\n- milk: oat\n",
        encoding="utf-8",
    )
    (folder / "memory/2026-11-20.md").write_text("# 2026-11-20\n\nThe ferry leaves at noon.\n", encoding="utf-8")
    with Memory.open(folder) as memory:
        memory.sessions.log("s1").append("user", "When does the ferry leave?")
        memory.records.remember("preference", "editor.theme", "dark")
        memory.sync()
        yield memory


class Page:
    """A browser without a window: a client that has the cookie, and sends forms as the pages hold them."""

    def __init__(self, app):
        self.client = TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)
        self.client.get("/", params={"token": TOKEN})

    def get(self, address, status=200, **given):
        answer = self.client.get(address, **given)
        assert answer.status_code == status, answer.text
        return answer.text

    def read(self, address, status=200, **given):
        """The text of a page as it is read."""
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", self.get(address, status, **given))).split())

    def form(self, address, action):
        """The hidden fields of the form of a page."""
        form = re.search(rf'<form method="post" action="{action}".*?</form>', self.get(address), re.DOTALL)[0]
        return dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form))

    def send(self, address, fields, **headers):
        return self.client.post(address, data=fields, headers={"Origin": f"http://{HOST}", **headers})

    def place(self, answer):
        """Where an answer leads to."""
        assert answer.status_code == 303, answer.text
        return urlsplit(answer.headers["location"])


@pytest.fixture
def opened():
    """Opens the page of a memory."""
    return lambda memory: Page(create_app(memory, token=TOKEN, hosts=[HOST]))


@pytest.fixture
def app(memory):
    return create_app(memory, token=TOKEN, hosts=[HOST])


@pytest.fixture
def page(app):
    return Page(app)
