"""Secrets are not shown, whatever the syntax around them; what is none stays."""

from __future__ import annotations

import pytest

from pkgrepo.client.setup.masking import HIDDEN, masked


@pytest.mark.parametrize(
    "text",
    [
        "//host/:_authToken={}",
        "//host/:_password = {}",
        "username = __token__\npassword = {}\n",
        '"auth": "{}"',
        'token = "{}"',
        "  npmAuthToken: {}",
        "machine host login me password {}",
        "<password>{}</password>",
        "index-url = https://user:{}@host/simple/",
        ":rubygems_api_key: {}",
        "https://{}@host/",
    ],
)
def test_a_secret_is_hidden(text: str) -> None:
    secret = "pkgr_p_abc123" if text.startswith("https") else "s3cret/+="
    secret = secret.replace("/", "") if "@host" in text else secret
    assert masked(text.format(secret)) == text.format(HIDDEN)


@pytest.mark.parametrize("text", ["registry=https://host/x/", "username = __token__", "npmAlwaysAuth: true", "[token]"])
def test_other_text_stays(text: str) -> None:
    assert masked(text) == text


def test_a_secret_that_is_known_is_hidden_anywhere() -> None:
    assert masked("a xyz b", "xyz") == f"a {HIDDEN} b"
