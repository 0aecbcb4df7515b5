"""``pkgrepo repo uploads``: uploads of layers that have not ended."""

from __future__ import annotations

import click

from pkgrepo.client.generated import add_operations


@click.group()
def uploads() -> None:
    """Unfinished uploads of a repository of images."""


add_operations(uploads, "repo uploads")
