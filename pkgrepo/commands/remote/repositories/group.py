"""The group ``pkgrepo repo``."""

from __future__ import annotations

import click

from pkgrepo.commands.groups import LazyGroup

_ROOM = "remote.repositories."

LAZY = {
    "list": (_ROOM + "reading", "list_repositories"),
    "show": (_ROOM + "reading", "show_repository"),
    "create": (_ROOM + "changing", "create_repository"),
    "edit": (_ROOM + "changing", "edit_repository"),
    "delete": (_ROOM + "changing", "delete_repository"),
    "apply": (_ROOM + "applying", "apply"),
    "gc": (_ROOM + "upkeep", "collect_garbage"),
    "purge": (_ROOM + "upkeep", "purge_cache"),
    "rebuild": (_ROOM + "upkeep", "rebuild"),
    "verify": (_ROOM + "upkeep", "verify"),
}


@click.group("repo", cls=LazyGroup, lazy=LAZY)
def repo() -> None:
    """Repositories of a server, by its API."""
