"""Addresses of services: which are usable, and what of them may be shown."""

from base64 import b64encode

import pytest

from openclaw_memory.embeddings.remote.service import checked_url, public, secrets_in
from openclaw_memory.errors import EmbedderError

SECRET = "https://user:p%40ss@host.example:8443/v1/?key=hunter2&n=#part"


def test_what_may_be_secret_is_taken_out():
    assert public(SECRET) == "https://host.example:8443/v1"


def test_what_may_be_secret_is_known():
    assert set(secrets_in(SECRET)) == {"p%40ss", "p@ss", b64encode(b"user:p@ss").decode()}
    assert secrets_in("https://host.example/v1") == ()


@pytest.mark.parametrize("url", ["http://localhost:11434/v1/", "https://user:secret@[::1]:80/v1"])
def test_a_usable_address_loses_only_its_last_slash(url):
    assert checked_url(url, "http://x") == url.rstrip("/")


@pytest.mark.parametrize(
    "url", ["", "host", "ftp://user:secret@host", "http://", "http://[::1/v1", "http://host:port/v1", "http://h:99999"]
)
def test_an_address_that_is_none_is_named_without_its_password(url):
    with pytest.raises(EmbedderError, match="write it like http://x") as caught:
        checked_url(url, "http://x")
    assert repr(url.rpartition("@")[2]) in str(caught.value)
    assert "secret" not in str(caught.value)
