"""The sentence that says what a token is for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pkgrepo.web.account import sentence_of

LISTED = [{"repository": "main/py", "actions": ["read", "write"], "packages": []}]


@pytest.mark.parametrize(
    ("access", "repositories", "scopes", "text"),
    [
        ("owner", [], [], "do in every repository what you may do there"),
        ("none", [], [], "do nothing that needs a permission"),
        ("none", [], ["audit"], "read the audit log"),
        ("listed", LISTED, [], "read and publish packages in main/py"),
        (
            "listed",
            [{"repository": "*/*", "actions": ["read"], "packages": ["acme-*"]}],
            ["users", "metrics"],
            "read the packages acme-* in every repository, manage users and read the metrics of the server",
        ),
        (
            "listed",
            [{"repository": "main/*", "actions": ["read", "write", "delete"], "packages": ["*"]}],
            [],
            "read, publish and delete packages in the repositories that are named like main/*",
        ),
    ],
    ids=["owner", "nothing", "scope", "listed", "packages", "pattern"],
)
def test_what_a_token_may_do_is_one_sentence(access: str, repositories: list, scopes: list, text: str) -> None:
    assert sentence_of(access, repositories, scopes) == (
        f"Programs that have this token may {text}, as long as you may do so yourself."
    )


def test_the_end_is_named() -> None:
    assert "py for 1 day, as" in sentence_of("listed", LISTED, [], days=1)
    assert "py until 2027-01-31, as" in sentence_of("listed", LISTED, [], until=datetime(2027, 1, 31, tzinfo=UTC))
