"""``pkgrepo webhook``: receivers of events, and what was sent to them."""

from __future__ import annotations

import click

from pkgrepo.client.generated import add_operations


@click.group()
def webhook() -> None:
    """Webhooks: of the whole server, of a repository (--repository), or of a project (--project)."""


add_operations(webhook, "webhook")
