"""That rooms outside of ``formats/`` do not name a format in code: what they ask about one is a field of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pkgrepo
from pkgrepo.composition.core import make_formats
from pkgrepo.config import Config

ROOT = Path(pkgrepo.__file__).parent
WORDS = {word for name, each in make_formats(Config()).items() for word in (name, *each.aliases)}
# The words that other servers use for formats, and the kinds of sources that speak the protocol of one.
OF_SERVERS = {
    "importing/plans.py",
    "importing/kinds.py",
    "importing/servers/artifactory.py",
    "importing/servers/gitea.py",
    "importing/servers/nexus.py",
}
# Programs of users that are called as a format is, languages of source code, the program that runs this, an example in
# the pages of the API, parts of paths as they came.
# What makes releases is not looked at: it is no part of the server.
OTHER_MEANINGS = {
    "client/setup/tools.py",
    "commands/setup.py",
    "http/answering/dispatch.py",
    "tool_files/tools/authorities.py",
    "web/api.py",
    "web/rendering/readme.py",
}


def words(source: str) -> Iterator[str]:
    """The names of formats that are texts of their own in code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and node.value in WORDS:
            yield node.value


def test_no_room_but_that_of_a_format_names_it() -> None:
    found = {
        path
        for each in ROOT.rglob("*.py")
        if not (path := each.relative_to(ROOT).as_posix()).startswith(("formats/", "packaging/"))
        and any(words(each.read_text("utf-8")))
    }
    assert found == OF_SERVERS | OTHER_MEANINGS


def test_a_text_in_code_is_found() -> None:
    assert list(words('if name == "npm":\n    pass\nimport conda\n')) == ["npm"]
