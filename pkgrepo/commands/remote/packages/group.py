"""The group ``pkgrepo package``."""

from __future__ import annotations

import click

from pkgrepo.commands.groups import LazyGroup

_ROOM = "remote.packages."

LAZY = {
    "list": (_ROOM + "reading", "list_packages"),
    "show": (_ROOM + "reading", "show_package"),
    "versions": (_ROOM + "reading", "list_versions"),
    "yank": (_ROOM + "changing", "yank"),
    "unyank": (_ROOM + "changing", "unyank"),
    "delete": (_ROOM + "changing", "delete"),
    "tag": (_ROOM + "tags", "set_tag"),
    "untag": (_ROOM + "tags", "remove_tag"),
}


@click.group("package", cls=LazyGroup, lazy=LAZY)
def package() -> None:
    """Packages and versions on a server. REPOSITORY is written as STORAGE/REPOSITORY."""
