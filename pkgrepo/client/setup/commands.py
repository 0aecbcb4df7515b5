"""``pkgrepo setup``."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit

import click
from attrs import evolve, frozen
from twisted.internet.threads import deferToThread

from pkgrepo.client.credentials.lending import is_at
from pkgrepo.client.locks import locked
from pkgrepo.client.named_versions import maybe_version
from pkgrepo.client.printer import time_with_age
from pkgrepo.client.session import Session, remote
from pkgrepo.client.setup.masking import masked
from pkgrepo.client.setup.planning import Planned, apply, merged, plan_undo, plan_write, show
from pkgrepo.client.setup.programs import Outcome, Programs
from pkgrepo.client.setup.state import TAKEN, KeptToken, State, read_state, state_file, write_state
from pkgrepo.client.setup.tokens import make_token
from pkgrepo.client.setup.tools import Tool, Wish, chosen_tools
from pkgrepo.client.terminal import Unsound, printable
from pkgrepo.client.tokens import revoke
from pkgrepo.errors import Conflict, Invalid, NotFound
from pkgrepo.tool_files.places import local_file
from pkgrepo.tool_files.values import ToolFile

_PLACEHOLDER: Final = "<TOKEN>"
# What the server says goes into files and commands: no quotes, blanks, ends of lines, or options.
_ADDRESS: Final = re.compile(r"[A-Za-z0-9._~:/@+%\[\]-]+")
_ARGUMENT: Final = re.compile(r"[A-Za-z0-9@_][A-Za-z0-9._~:/@+-]*")
_PATH: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_SHOWN_LINES: Final = 8  # of what a program prints that fails


@click.command()
@click.argument("repository", metavar="STORAGE/REPOSITORY")
@click.option("--write", "verb", flag_value="write", help="Set up the tools on this machine.")
@click.option("--undo", "verb", flag_value="undo", help="Take back what --write has changed.")
@click.option("--check", "verb", flag_value="check", help="Ask the server with the tools themselves.")
@click.option("--tool", "tools", default="", metavar="NAMES", help="Only these tools, with commas, such as npm,pnpm.")
@click.option("--scope", default="", metavar="@SCOPE", help="With --write, of npm: only packages of this scope.")
@click.option("--days", type=click.IntRange(min=1), help="With --write: days until a token in a file ends. [30]")
@click.option("--yes", is_flag=True, help="Do not ask before files are changed.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--client", default="", help="Print texts for this client only, such as pip or npm.")
@click.option("--package", default="", help="Print, with --version: how to install it.")
@click.option("--version", default="", help="Print: the version to install.")
@remote
async def setup(
    session: Session,
    repository: str,
    verb: str | None,
    tools: str,
    scope: str,
    days: int | None,
    client: str,
    package: str,
    version: str,
    *,
    yes: bool,
    dry_run: bool,
) -> None:
    """
    Print what clients need to use a repository, or set up the tools on this machine.

    Printed, <TOKEN> stands for an access token. With --write the tools that are on the PATH are set up: the changes are
    shown and you are asked. A token in a file opens this repository alone, and ends; --undo revokes it.
    """
    if verb is None:
        return await _print(session, repository, tools, client, package, version)
    if client or package or version:
        raise Invalid(f"--client, --package and --version print texts, and are not for --{verb}")
    if scope and (not scope.startswith("@") or "/" in scope or len(scope) < 2):
        raise Invalid("a scope looks like @acme")
    if verb == "undo":
        return await _undo(session, repository, [each for each in tools.split(",") if each], yes=yes, dry_run=dry_run)
    work = await _work(session, repository, tools, scope)
    if verb == "check":
        return await _check(session, work)
    return await _write(session, work, days, yes=yes, dry_run=dry_run)


@frozen
class _Work:
    """A repository with its record, the tools, and what they are set up for."""

    repository: str
    record: Mapping[str, Any]
    tools: Sequence[Tool]
    wish: Wish
    programs: Programs


async def _work(session: Session, repository: str, tools: str, scope: str) -> _Work:
    client = session.client
    record = await client.get("repository", repository)
    texts = await client.get("repository", repository, "setup")
    programs = Programs(dict(os.environ))
    chosen = chosen_tools(tools, {each["client"] for each in texts}, programs)
    wish = Wish(
        url=_own(client.url, record["url"]),
        server=client.url,
        host=urlsplit(_own(client.url, record["url"])).netloc,
        has_images=record["has_images"],
        publishes=any(each["title"].startswith("Publish") for each in texts),
        scope=scope,
        ca_file=_certificates(client.ca_file),
    )
    path = f"{record['storage_name']}/{record['name']}"
    if not _PATH.fullmatch(path):
        raise Invalid(f"the server calls the repository {printable(path)}, which is no name")
    return _Work(path, record, chosen, wish, programs)


async def _write(session: Session, work: _Work, days: int | None, *, yes: bool, dry_run: bool) -> None:
    client, path = session.client, state_file(os.environ)
    state = read_state(path)
    kept = None if days else await _live_token(session, state, work.repository)
    shown = kept.text if kept else _PLACEHOLDER if client.has_credentials else ""
    files = await _files(work, evolve(work.wish, token=shown))
    if not files:
        names = ", ".join(each.name for each in work.tools)
        raise Invalid(f'without a login there is nothing to set up for {names}: "pkgrepo login"')
    planned = plan_write(state, client.url, work.repository, files)
    if not any(each.is_change for each in planned):
        session.printer.done("nothing to change: " + ", ".join(str(each.path) for each in planned), [])
        return _hints(session, work)
    show(session.printer, planned, shown)
    if dry_run:
        return None
    if not yes:
        click.confirm("Change these files?", abort=True, err=True)
    made = None
    if kept is None and any(file.private for _, file in files.values()):
        made = await make_token(client, work.repository, work.record["actions"] or (), days)
        files = await _files(work, evolve(work.wish, token=made.text))
    await _write_files(session, work.repository, planned, files, made)
    _told(session, planned, "wrote")
    if made is not None and made.expires_at is not None:
        session.printer.note(f"the token ends {time_with_age(made.expires_at.isoformat())}; write again to renew it")
    return _hints(session, work)


async def _write_files(
    session: Session,
    repository: str,
    shown: Sequence[Planned],
    files: Mapping[Path, tuple[tuple[str, ...], ToolFile]],
    made: KeptToken | None,
) -> None:
    """
    Write files, with a token that was made for them; the tokens before it are revoked when no file has them any more.

    :raises Conflict: another program is at work, or a file is not as it was ``shown``; nothing is written then
    """
    client, path, is_kept = session.client, state_file(os.environ), False
    try:
        with locked(path, TAKEN):
            state = read_state(path)
            planned = plan_write(state, client.url, repository, files)
            if [each.found for each in planned] != [each.found for each in shown]:
                raise Conflict("a file was changed while you were asked; nothing is written")
            if made is not None:
                state.tokens.append(made)
                write_state(path, state)  # before the files, so that it can be revoked whatever happens to them
                is_kept = True
            for each in planned:
                _apply(state, each)
                write_state(path, state)
            if made is not None:
                old = [each for each in state.tokens_of(client.url, repository) if each.id != made.id]
                for token in old:
                    await revoke(client, token.id)
                state.tokens = [each for each in state.tokens if each not in old]
                write_state(path, state)
    except BaseException:
        if made is not None and not is_kept:
            await revoke(client, made.id)  # no file has it
        raise


async def _live_token(session: Session, state: State, repository: str) -> KeptToken | None:
    """The token in files for a repository, unless it ends soon, was revoked, or is that of another user."""
    kept = state.token(session.client.url, repository)
    if kept is None or not session.client.has_credentials:
        return None
    found = await session.client.find("user", "token", kept.id)
    return kept if found is not None and found["revoked_at"] is None else None


def _certificates(path: Path | None) -> str:
    """
    The file of certificates as tools are told it.

    :raises Invalid: its path has what could mean something else in their files
    """
    text = "" if path is None else str(path.absolute())
    if re.search(r"[\x00-\x1f\"'#;$%`*\[\]]", text):
        raise Invalid(f"the path {printable(text)} cannot stand in files of all tools: copy the certificates elsewhere")
    return text


def _own(server: str, address: str) -> str:
    """
    The address of a repository that a server has told. It must be on that server, as the person has named it.

    Tools send what they publish, and tokens, to the addresses in their files.

    :raises Invalid: it is elsewhere, or has what could mean something else in a file
    """
    if not _ADDRESS.fullmatch(address):
        raise Invalid(f"the server calls itself {printable(address)}, which is no address")
    if "://" not in address or urlsplit(address).username is not None or not is_at(address, server):
        raise Invalid(
            f"the server at {server} says that the repository is at {printable(address)}, which is elsewhere, and "
            "nothing is set up for that: log in at the address that its users name (server.public_url), or correct that"
        )
    return address


async def _files(work: _Work, wish: Wish) -> dict[Path, tuple[tuple[str, ...], ToolFile]]:
    found = []
    for tool in work.tools:
        for file in await deferToThread(tool.all_files, wish, work.programs):
            place = local_file(file.place, os.environ, sys.platform)
            found.append((Path(os.path.realpath(place)), tool.name, file))  # a link stays one
    return merged(found)


def _apply(state: State, planned: Planned) -> None:
    if planned.is_change:
        apply(planned)
    state.changes = [each for each in state.changes if each.path != str(planned.path)] + list(planned.changes)


def _told(session: Session, planned: Sequence[Planned], verb: str) -> None:
    changed = [each for each in planned if each.is_change]
    records = [{"file": str(each.path), "tools": list(each.tools), "removed": each.wanted is None} for each in changed]
    if session.printer.as_json:
        session.printer.json(records)
        return
    for each in changed:
        said = "removed" if each.wanted is None else verb
        session.printer.line(f"{said} {each.path} ({', '.join(each.tools)})")


def _hints(session: Session, work: _Work) -> None:
    for tool in work.tools:
        for hint in tool.hints(work.wish):
            session.printer.note(f"{tool.name}: {hint}")


async def _undo(session: Session, repository: str, tools: Sequence[str], *, yes: bool, dry_run: bool) -> None:
    client, path = session.client, state_file(os.environ)
    state = read_state(path)
    if not state.of(client.url, repository):
        raise NotFound("set-up of", repository)
    planned, told = plan_undo(state, client.url, repository, tools)
    show(session.printer, planned, *(each.text for each in state.tokens))
    for sentence in told:
        session.printer.note(sentence)
    if dry_run:
        return
    if not yes and any(each.is_change for each in planned):
        click.confirm("Change these files?", abort=True, err=True)
    with locked(path, TAKEN):
        state = read_state(path)
        planned, told = plan_undo(state, client.url, repository, tools)
        for each in planned:
            _apply(state, each)
            write_state(path, state)
        unused = [] if state.of(client.url, repository) else state.tokens_of(client.url, repository)
        for token in unused:
            if await revoke(client, token.id):
                state.tokens.remove(token)
            else:
                session.printer.note("its token could not be revoked: pkgrepo token list")
        write_state(path, state)
    _told(session, planned, "restored")
    if told:
        raise Unsound(len(told))


async def _check(session: Session, work: _Work) -> None:
    """Run the commands of each tool; those that ask for a package use one that the repository has."""
    found = (await session.client.get("repository", work.repository, "packages", limit=1))["items"]
    wish = evolve(work.wish, token=_PLACEHOLDER if session.client.has_credentials else "")
    # a name is an argument of programs, and must not be taken for an option
    if found and _ARGUMENT.fullmatch(found[0]["name"]) and _ARGUMENT.fullmatch(found[0]["latest"] or "none"):
        wish = evolve(wish, package=found[0]["name"], version=found[0]["latest"] or "")
    else:
        session.printer.note(f"{work.repository} has no package that a tool could ask for")
    failed = 0
    for tool in work.tools:
        outcomes = await deferToThread(_run_checks, tool, wish, work.programs)
        if not outcomes:
            session.printer.line(f"{tool.name}: not checked: there is nothing to ask for")
        for words, done in outcomes:
            session.printer.line(f"{tool.name}: {'ok' if done.status == 0 else 'failed'}: {words}")
            if done.status != 0:
                failed += 1
                for line in done.text.splitlines()[-_SHOWN_LINES:]:
                    session.printer.line(f"    {masked(line)}")
    if failed:
        raise Unsound(failed)


def _run_checks(tool: Tool, wish: Wish, programs: Programs) -> list[tuple[str, Outcome]]:
    """Run the commands of a tool in a folder of their own, which is removed; each as text, with its outcome."""
    with TemporaryDirectory(prefix="pkgrepo-setup-", ignore_cleanup_errors=True) as name:
        for path, text in tool.project(wish).items():
            Path(name, path).write_text(text, "utf-8")
        commands = tool.check(wish, programs)
        return [(" ".join(each), programs.run(each, folder=Path(name))) for each in commands]


async def _print(session: Session, repository: str, tools: str, client: str, package: str, version: str) -> None:
    package, named = maybe_version(package, version or None)
    version = named or ""
    place = ("repository", repository, "setup")
    found = await session.client.get(*place, client=client, package=package, version=version)
    if tools:
        chosen = chosen_tools(tools, {each["client"] for each in found}, Programs(dict(os.environ)))
        found = [each for each in found if each["client"] in {tool.client for tool in chosen}]
    printer = session.printer
    if printer.as_json:
        printer.json(found)
        return
    if not found:
        raise NotFound("client", client or repository)
    for number, each in enumerate(found):
        if number:
            click.echo()
        place_of = f" ({each['file']})" if each["file"] and each["file"] != each["title"] else ""
        printer.heading(f"# {each['title']}{place_of}")
        for line in each["text"].splitlines():
            printer.line(line)
    if not client and not package:
        click.echo(err=True)
        printer.note(f"pkgrepo setup {repository} --write puts this into the files of the tools on this machine")
