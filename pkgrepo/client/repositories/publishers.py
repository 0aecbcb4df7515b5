"""``pkgrepo publisher``: the pipelines that publish to a repository, or one package, without a stored token."""

from __future__ import annotations

import click

from pkgrepo.client.generated import add_operations


@click.group()
def publisher() -> None:
    """Pipelines that publish with the identity tokens of their forge (trusted publishing)."""


add_operations(publisher, "publisher")
