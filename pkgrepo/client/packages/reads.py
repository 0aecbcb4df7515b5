"""The command that explains what clients get."""

from __future__ import annotations

import sys
from typing import Any

import click

from pkgrepo.client.named_versions import maybe_version
from pkgrepo.client.printer import Printer
from pkgrepo.client.session import Session, remote
from pkgrepo.client.terminal import EXIT_CODES
from pkgrepo.errors import NotFound


@click.command()
@click.argument("repository", metavar="STORAGE/REPOSITORY")
@click.argument("package", metavar="PACKAGE[==VERSION]")
@click.argument("written", metavar="[VERSION]", required=False)
@click.option("--version", default="", help="A version to explain as well; of an image a tag or digest.")
@click.option("--file", "file", default="", metavar="PATH", help="Instead, a file: its path below the repository.")
@click.option("--refresh", is_flag=True, help="Have upstreams confirm what is kept.")
@remote
async def explain(
    session: Session, repository: str, package: str, written: str | None, version: str, file: str, *, refresh: bool
) -> None:
    """
    Explain what clients get under the name of a package, and how that was decided.

    Exit code 3 if there is no such package, version or file.
    """
    package, named = maybe_version(package, version or written)
    version = named or ""
    found = await session.client.get(
        "explain", repository=repository, package=package, version=version, file=file, refresh=refresh
    )
    printer = session.printer
    if printer.as_json:
        printer.json(found)
    else:
        _show_explanation(printer, found)
    if found["outcome"] == "not_found":
        sys.exit(EXIT_CODES[NotFound])


def _show_explanation(printer: Printer, found: Any) -> None:
    printer.heading(found["sentence"])
    for number, step in enumerate(found["steps"], 1):
        printer.line(f"  {number}. {step['sentence']}")
    if found["latest"]:
        printer.line(f"latest: {found['latest']['version']}: {found['latest']['sentence']}")
    for name in ("version", "file", "manifest"):
        if found[name]:
            printer.record(None, [(key, value) for key, value in found[name].items() if value not in (None, [])])
