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

from pkgrepo.client.api import at
from pkgrepo.client.people.preview import preview_people
from pkgrepo.client.printer import Printer
from pkgrepo.client.profiles import Options, find_target
from pkgrepo.client.session import Session, checked, complete_profiles, run_with
from pkgrepo.client.terminal import Unsound, ask_secret, fail, make_progress
from pkgrepo.commands.offline import run_on_existing
from pkgrepo.commands.plans import print_plan
from pkgrepo.commands.settings import Sources
from pkgrepo.composition.core import Core, make_formats
from pkgrepo.composition.imports import make_importers
from pkgrepo.config import Config
from pkgrepo.display import plural, size
from pkgrepo.errors import NotFound
from pkgrepo.importing.bundles import KIND as BUNDLE
from pkgrepo.importing.kinds import make_kinds
from pkgrepo.model import SYSTEM, Repository
from pkgrepo.repositories.upkeep.imports import ImportRequest

NICE: Final = 5  # added to the priority's number, so that a server here goes first


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
    if kind == BUNDLE and not on_server and not os.path.isfile(source):
        fail(f"{source} is no file", 2)
    if kind != BUNDLE and not remote and not on_server and not os.path.isdir(source):
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
        **({"keys": list(request.keys)} if request.keys else {}),
    }
    if request.secret:
        secret = "password" if request.username else "token"
        body["credentials"] = {"username": request.username, secret: request.secret}
    job = (await session.client.call("POST", at("import"), value=body, query={"wait": 0})).value
    _show(session.printer, await session.wait_for(job))


def _import_folder(sources: Sources, request: ImportRequest, into: str, *, as_json: bool) -> None:
    """Take in a folder of this machine, with the data folder of a server here."""
    config = sources.read()
    os.nice(NICE)

    async def work(core: Core) -> None:
        await core.open_storages()
        importers = make_importers(core, config, None)
        found = await importers.run(_find(core, into), request, SYSTEM, make_progress())
        await core.follower.catch_up()
        _show(Printer(as_json=as_json), dict(found))

    run_on_existing(config, work, "" if sources.file is not None else _advice(request, into))


def _advice(request: ImportRequest, into: str) -> str:
    """What to do where no configuration was given, and there is no data folder of a server here."""
    bundle = request.kind == BUNDLE
    ways = [
        f"This command reads a {'file' if bundle else 'folder'} into the data of a server on this machine, whose "
        f"configuration it needs: pkgrepo --config FILE {'bundle read' if bundle else 'import'} ... --into {into}",
        "With --on-server the server that you have logged in to reads it, if imports.folders lists where it is",
    ]
    if not bundle:
        ways.append(f"Files are sent to it by: pkgrepo upload {into} FILES")
    return ". ".join(ways)


def _show(printer: Printer, found: dict[str, Any]) -> None:
    """Print what was taken in. :raises Unsound: something was left out"""
    verb = "would take in" if found["dry_run"] else "took in"
    files, packages = plural(found["files"], "file"), plural(found["packages"], "package")
    printer.done(
        f"{verb} {files} ({size(found['size_bytes'])}) of {packages}, of which {found['unchanged']} have not changed "
        f"since the last run; {plural(found['present'], 'file')} there already, {found['facts']} yanks, "
        "deprecations, tags and download counts set",
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
import_group.add_command(print_plan)
for _name, _kind in make_kinds(make_formats(Config())).items():
    if not _kind.files:
        _add_command(_name, _kind.about)


@click.command("read")
@click.argument("file")
@click.option("--into", required=True, metavar="STORAGE/REPOSITORY", help="The hosted repository to take it into.")
@click.option(
    "--key",
    "key_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The public key (PEM) of the server that wrote it; without any those of imports.keys.",
)
@click.option("--repository", "repositories", multiple=True, help="The one that is taken, if the file has several.")
@click.option("--only", multiple=True, metavar="GLOB", help="Only packages whose names match; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Verify and compare, and print what would be taken in.")
@click.option("--again", is_flag=True, help="Compare also packages that have not changed since the last run.")
@click.option(
    "--on-server", is_flag=True, help="The server reads the file, which is below a folder of imports.folders."
)
@click.option("--profile", default="", help="The profile to use.", shell_complete=complete_profiles)
@click.option("--url", default="", metavar="URL", help="The address of the server, instead of a profile's.")
@click.option("--token-file", type=click.Path(path_type=Path), help="File with the access token of the server.")
@click.option("--ca-file", type=click.Path(path_type=Path), help="Certificates of a private authority (PEM).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.pass_obj
def read_bundle(sources: Sources, /, *, file: str, key_files: tuple[Path, ...], **given: Any) -> None:
    """
    Take in a bundle; a server may run at the same time.

    All of it is verified before anything is published: the digests of its files, and the signature of the list. The
    packages keep their times, publishers, yanks, deprecations and tags. What is there already is not taken again, and a
    run that was interrupted is continued by the next one.
    """
    try:
        keys = [each.read_text("ascii") for each in key_files]
    except (OSError, UnicodeDecodeError) as error:
        fail(f"the key cannot be read: {error}", 2)
    more: dict[str, Any] = {
        "names": None,
        "username": "",
        "password_file": None,
        "follow_links": False,
        "renamed": {},
    }
    _run(sources, BUNDLE, source=file, keys=keys, **more, **given)
