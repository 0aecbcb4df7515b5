"""
``pkgrepo import``: take in packages from another registry, or from a folder.

What is at an address is fetched by a server, which is asked by its API. A folder is one of this machine: it is read by
the command itself, which works on the data folder of a server here; or by a server, with --on-server.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any, Final

import click

from pkgrepo.commands.http import Failed
from pkgrepo.commands.offline import Unsound, run_on_existing
from pkgrepo.commands.remote.client import at
from pkgrepo.commands.remote.people.preview import preview_people
from pkgrepo.commands.remote.printer import Printer
from pkgrepo.commands.remote.profiles import Options, find_target
from pkgrepo.commands.remote.session import Session, checked, complete_profiles, run_with
from pkgrepo.commands.settings import Sources
from pkgrepo.commands.terminal import ask_secret, fail, make_progress
from pkgrepo.composition.core import Core
from pkgrepo.composition.imports import make_importers
from pkgrepo.errors import NotFound
from pkgrepo.importing.kinds import KINDS
from pkgrepo.model import SYSTEM, Repository
from pkgrepo.repositories.upkeep.imports import ImportRequest
from pkgrepo.web.rendering.filters import plural, size

POLL_S: Final = 1.0  # seconds between two looks at the job


@click.group("import")
def import_group() -> None:
    """
    Take packages in from another registry (its address) or from a folder; a server may run at the same time.

    What is there already is neither fetched nor replaced, and a run that was interrupted is continued by the next one.
    """


def _pairs(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for each in given:
        before, equals, after = each.partition("=")
        if not equals:
            raise click.BadParameter(f"{each!r} is not FROM=TO")
        pairs[before] = after
    return pairs


def _add_command(name: str, about: str) -> None:
    """Add the command for a kind of source."""

    @import_group.command(name, help=about)
    @click.argument("source")
    @click.option("--into", required=True, metavar="STORAGE/REPOSITORY", help="The hosted repository to take it into.")
    @click.option("--only", multiple=True, metavar="GLOB", help="Only packages whose names match; may be repeated.")
    @click.option("--names", type=click.File(), help="File with names of packages, for a source without a list.")
    @click.option(
        "--repository", "repositories", multiple=True, help="A repository of the source, where it has several."
    )
    @click.option(
        "--map", "renamed", multiple=True, callback=_pairs, metavar="FROM=TO", help="Rename images that begin so."
    )
    @click.option("--username", default="", help="User name at the source; the password is read as below.")
    @click.option("--password-file", type=click.File(), help="File with the password, or without --username the token.")
    @click.option("--dry-run", is_flag=True, help="Compare, and print what would be taken in.")
    @click.option("--again", is_flag=True, help="Compare also packages that have not changed since the last run.")
    @click.option("--on-server", is_flag=True, help="The server reads the folder, which imports.folders must list.")
    @click.option("--follow-links", is_flag=True, help="Follow symbolic links (kind maven).")
    @click.option("--profile", default="", help="The profile to use.", shell_complete=complete_profiles)
    @click.option("--url", default="", metavar="URL", help="The address of the server, instead of a profile's.")
    @click.option("--token-file", type=click.Path(path_type=Path), help="File with the access token of the server.")
    @click.option("--ca-file", type=click.Path(path_type=Path), help="Certificates of a private authority (PEM).")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
    @click.pass_obj
    def run(sources: Sources, /, **given: Any) -> None:
        _run(sources, name, **given)


def _run(
    sources: Sources,
    kind: str,
    *,
    source: str,
    into: str,
    names: IO[str] | None,
    username: str,
    password_file: IO[str] | None,
    on_server: bool,
    profile: str,
    url: str,
    token_file: Path | None,
    ca_file: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    remote = source.startswith(("http://", "https://"))
    secret = ask_secret(password_file, repeated=False) if username or password_file else ""
    listed = [each for line in names or () if (each := line.strip()) and not each.startswith("#")]
    if not remote and not on_server and not os.path.isdir(source):
        fail(f"{source} is no folder, and no address (http or https)", 2)
    request = ImportRequest(
        kind=kind,
        source=source if remote or on_server else os.path.abspath(source),
        username=username,
        secret=secret,
        names=listed,
        **given,
    )
    if remote or on_server:
        options = Options(profile=profile, url=url, token_file=token_file, ca_file=ca_file)
        target = checked(lambda: find_target(options, os.environ))
        run_with(target, Printer(as_json=as_json), lambda session: _ask(session, request, into))
    else:
        _import_folder(sources, request, into, as_json=as_json)


async def _ask(session: Session, request: ImportRequest, into: str) -> None:
    """Let a server take in a source, and wait until it has."""
    body: dict[str, Any] = {
        "kind": request.kind,
        "source": request.source,
        "into": into,
        "only": list(request.only),
        "names": list(request.names),
        "repositories": list(request.repositories),
        "renamed": dict(request.renamed),
        "dry_run": request.dry_run,
        "again": request.again,
    }
    if request.secret:
        secret = "password" if request.username else "token"
        body["credentials"] = {"username": request.username, secret: request.secret}
    job = (await session.client.call("POST", at("import"), value=body, query={"wait": 0})).value
    progress = make_progress()
    progress.begin("files", 0)
    done = 0
    while job["state"] == "running":
        await session.sleep(POLL_S)
        job = await session.client.get("job", job["id"])
        now = sum(each["done"] for each in job["parts"])
        progress.step(now - done)
        done = now
    progress.end()
    if job["state"] != "done":
        raise Failed("; ".join(job["errors"]) or f"the job was {job['state']}")
    _show(session.printer, job["result"])


def _import_folder(sources: Sources, request: ImportRequest, into: str, *, as_json: bool) -> None:
    """Take in a folder of this machine, with the data folder of a server here."""
    config = sources.read()

    async def work(core: Core) -> None:
        await core.open_storages()
        importers = make_importers(core, config, None)
        found = await importers.run(_find(core, into), request, SYSTEM, make_progress())
        await core.follower.catch_up()
        _show(Printer(as_json=as_json), dict(found))

    run_on_existing(config, work)


def _show(printer: Printer, found: dict[str, Any]) -> None:
    """Print what was taken in. :raises Unsound: something was left out"""
    verb = "would take in" if found["dry_run"] else "took in"
    files, packages = plural(found["files"], "file"), plural(found["packages"], "package")
    printer.done(
        f"{verb} {files} ({size(found['size_bytes'])}) of {packages}, of which {found['unchanged']} have not changed "
        f"since the last run; {plural(found['present'], 'file')} there already, {found['facts']} yanks, deprecations "
        "and tags set",
        found,
    )
    for each in found["left_out"]:
        package, item = each["package"], each["item"]
        name = item if item.startswith(f"{package}/") else " ".join(filter(None, (package, item)))
        printer.note(f"left out: {name}: {each['reason']}")
    more = found["left_out_count"] - len(found["left_out"])
    if more > 0:
        printer.note(f"and {more} more")
    if found["left_out_count"]:
        raise Unsound(found["left_out_count"])


def _find(core: Core, path: str) -> Repository:
    """The repository to take into. :raises NotFound: it does not exist"""
    storage, _, name = path.partition("/")
    repository = core.registry.find(storage, name)
    if repository is None:
        raise NotFound("repository", path)
    return repository


import_group.add_command(preview_people)
for _name, _kind in KINDS.items():
    _add_command(_name, _kind.about)
