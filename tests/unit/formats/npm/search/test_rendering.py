"""The answer of a search, and members of the old list."""

import json
from datetime import UTC, datetime

from pkgrepo.formats.npm.search.rows import Person, Row, render_answer, render_member

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ALICE, BOB = Person("alice", "a@example.org"), Person("bob")


def row(name: str, **fields: object) -> Row:
    return Row(name=name, version="1.0.0", date=AT, publisher=ALICE, **fields)


def test_answer_has_the_fields_that_npm_prints() -> None:
    found = row(
        "@acme/x",
        description="d",
        keywords=["k"],
        author="Azer",
        license="MIT",
        maintainers=[BOB],
        links={"homepage": "https://example.org"},
        downloads=999,
    )
    document = render_answer([(101.0, found)], 7, AT, "https://h/repositories/main/npm")
    assert document == {
        "objects": [
            {
                "package": {
                    "name": "@acme/x",
                    "scope": "acme",
                    "version": "1.0.0",
                    "description": "d",
                    "keywords": ["k"],
                    "date": "2026-01-02T03:04:05.000Z",
                    "links": {"npm": "https://h/repositories/main/npm/@acme/x", "homepage": "https://example.org"},
                    "publisher": {"username": "alice", "email": "a@example.org"},
                    "maintainers": [{"username": "bob", "email": ""}],
                    "author": {"name": "Azer"},
                    "license": "MIT",
                },
                "score": {"final": 101.0, "detail": {"quality": 1.0, "popularity": 0.5, "maintenance": 1.0}},
                "searchScore": 101.0,
                "flags": {"insecure": 0},
            }
        ],
        "total": 7,
        "time": "2026-01-02T03:04:05.000Z",
    }


def test_unscoped_and_deprecated_packages_are_marked() -> None:
    (found,) = render_answer([(1.0, row("paddle", description="Boats", deprecated=True))], 1, AT, "")["objects"]
    assert found["package"]["scope"] == "unscoped"
    assert found["flags"]["deprecated"] is True


def test_member_of_the_old_list_begins_with_the_name() -> None:
    listed = json.loads(b"{%b}" % render_member(row("left-pad", maintainers=[ALICE])))
    assert listed.keys() == {"left-pad"}
    assert listed["left-pad"]["dist-tags"] == {"latest": "1.0.0"}
    assert listed["left-pad"]["maintainers"] == [{"name": "alice", "email": "a@example.org"}]
