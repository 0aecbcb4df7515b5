"""Log in and out, and the profiles that keep the addresses and tokens of servers."""

from __future__ import annotations

import os
import socket
from base64 import b64encode
from pathlib import Path
from typing import IO, Any

import click

from pkgrepo.client.api import Client, at
from pkgrepo.client.browser_login import can_open_browser, log_in_by_browser
from pkgrepo.client.credentials.lending import keep_lent, lent_file
from pkgrepo.client.http import Failed, is_plain, parse_address, read_token
from pkgrepo.client.printer import Column, Printer, time_with_age
from pkgrepo.client.profiles import (
    DEFAULT,
    SERVER,
    Profile,
    Target,
    find_profiles_file,
    read_profiles,
    write_profiles,
)
from pkgrepo.client.session import Session, checked, complete_profiles, run_with
from pkgrepo.client.terminal import EXIT_CODES, ask_secret, fail
from pkgrepo.errors import Forbidden, Invalid

NEEDS_CODE = "You have enabled multifactor authentication"  # how the server begins to ask for a code


@click.command()
@click.argument("url")
@click.option("--profile", "name", default=DEFAULT, show_default=True, help="The name of the profile to make.")
@click.option("--username", "-u", default="", help="Log in with this name and a password, without a browser.")
@click.option("--password-file", type=click.File(), help="Read the password from a file (- means standard input).")
@click.option("--otp", default="", help="A one-time password, if you have a second factor; else you are asked for it.")
@click.option("--no-browser", is_flag=True, help="Show a code to type in a browser elsewhere, and open none here.")
@click.option("--token-file", type=click.Path(path_type=Path), help="Keep the token in this file instead of a new one.")
@click.option("--days", type=click.IntRange(min=1), help="Days until the token expires.")
@click.option("--scope", "scopes", multiple=True, help="What the token opens; repeat. By default all that you may do.")
@click.option("--ca-file", type=click.Path(path_type=Path), help="Certificates of a private authority (PEM).")
def login(
    url: str,
    name: str,
    username: str,
    password_file: IO[str] | None,
    otp: str,
    token_file: Path | None,
    days: int | None,
    scopes: tuple[str, ...],
    ca_file: Path | None,
    *,
    no_browser: bool,
) -> None:
    """
    Get an access token from the server at URL, and keep it in a profile.

    You approve it in a browser, in which you log in as always; with --username you type a password here instead. The
    token is called after this machine, and "pkgrepo logout" revokes it.
    """
    address = checked(lambda: parse_address(url, SERVER, "the address"))
    if is_plain(address):
        click.echo("warning: the credentials are not encrypted on their way to this address", err=True)
    certificates = ca_file.absolute() if ca_file else None
    profile = Profile(url=address, ca_file=str(certificates or ""))
    if token_file is not None:
        profile.token = checked(lambda: read_token(token_file))
        target = Target(address, f"Bearer {profile.token}", certificates)
        run_with(target, Printer(as_json=False), lambda session: _keep(session, name, profile))
    if not username and not password_file and not otp:
        opens = not no_browser and can_open_browser(os.environ)
        target = Target(address, "", certificates)
        run_with(target, Printer(as_json=False), lambda session: _approve(session, name, profile, days, scopes, opens))
    username = username or str(click.prompt("Username", err=True))
    if ":" in username:
        fail("a user name has no colon", EXIT_CODES[Invalid])
    password = ask_secret(password_file, repeated=False)
    basic = b64encode(f"{username}:{password}".encode()).decode("ascii")
    target = Target(address, f"Basic {basic}", certificates)
    run_with(target, Printer(as_json=False), lambda session: _log_in(session, name, profile, days, scopes, otp))


@click.command()
@click.option("--profile", "name", default="", help="The profile to remove.", shell_complete=complete_profiles)
@click.option("--keep-token", is_flag=True, help="Remove the profile only, and do not revoke the token.")
def logout(name: str, *, keep_token: bool) -> None:
    """Revoke the token of a profile, and remove the profile."""
    path = find_profiles_file(os.environ)
    profiles = checked(lambda: read_profiles(path))
    name = name or os.environ.get("PKGREPO_PROFILE", "") or profiles.current
    if not name:
        fail("there is no profile", 3)
    profile = checked(lambda: profiles.get(name))

    async def forget(session: Session) -> None:
        lent = keep_lent(lent_file(os.environ), name, None)
        if lent is not None and lent.id:
            await _revoke(session, lent.id)
        if profile.token_id and not keep_token:
            await _revoke(session, profile.token_id)
        profiles.remove(name)
        write_profiles(path, profiles)
        session.printer.done(f"logged out of {profile.url}")

    target = Target(profile.url, f"Bearer {profile.token}", _certificates(profile))
    run_with(target, Printer(as_json=False), forget)


async def _log_in(
    session: Session, name: str, profile: Profile, days: int | None, scopes: tuple[str, ...], otp: str
) -> None:
    body = {**await _asked(session, profile, days, scopes), "description": "made by pkgrepo login"}
    await _keep_new(session, name, profile, await _make_token(session, body, otp))


async def _approve(
    session: Session, name: str, profile: Profile, days: int | None, scopes: tuple[str, ...], opens: bool
) -> None:
    """Log in by a browser; the session has no credentials, so that what follows uses the token."""
    made = await log_in_by_browser(session, await _asked(session, profile, days, scopes), opens=opens)
    client = Client(session.reactor, Target(profile.url, f"Bearer {made['token']}", _certificates(profile)))
    try:
        await _keep_new(Session(client, session.printer, session.reactor), name, profile, made)
    finally:
        await client.close()


async def _asked(session: Session, profile: Profile, days: int | None, scopes: tuple[str, ...]) -> dict[str, Any]:
    """What the token is called, and what it is for."""
    asked = list(scopes) or await _all_scopes(session, profile)
    body: dict[str, Any] = {"name": f"pkgrepo on {socket.gethostname()}"[:100], "scopes": asked}
    return body if days is None else {**body, "expires_in_days": days}


async def _keep_new(session: Session, name: str, profile: Profile, made: Any) -> None:
    """Keep a new token in a profile."""
    profile.token, profile.token_id, profile.username = made["token"], made["id"], made["owner"]
    try:
        await _store(session, name, profile)
    except (Invalid, OSError):
        await _revoke(session, profile.token_id)  # no profile has it
        raise
    if made["expires_at"]:
        session.printer.note(f"the token is valid until {time_with_age(made['expires_at'])}")
    session.printer.line(f"logged in to {profile.url} as {profile.username} (profile {name})")


async def _keep(session: Session, name: str, profile: Profile) -> None:
    """Make a profile of a token that exists, after the server has accepted it."""
    found = await session.client.get("user", "whoami")
    profile.username = found["username"]
    await _store(session, name, profile)
    session.printer.line(f"logged in to {profile.url} as {profile.username} (profile {name})")


async def _store(session: Session, name: str, profile: Profile) -> None:
    path = find_profiles_file(os.environ)
    profiles = read_profiles(path)
    before = profiles.profiles.get(name)
    profiles.add(name, profile)
    write_profiles(path, profiles)
    if before is not None and before.token_id and before.url == profile.url:
        await _revoke(session, before.token_id)


async def _make_token(session: Session, body: dict[str, Any], otp: str) -> Any:
    """A token for the password, and for a code where the account has a second factor, which counts for one request."""
    try:
        fields = {"OTP": otp} if otp else {}
        return (await session.client.call("POST", at("user", "token"), value=body, headers=fields)).value
    except Failed as refused:
        needs_code = str(refused).startswith(NEEDS_CODE)
        if refused.status == 401 and (otp or not needs_code):
            raise Forbidden(str(refused)) from refused  # without the hint to log in
        if otp or not needs_code:
            raise
    return await _make_token(session, body, str(click.prompt("One-time password", err=True)))


async def _all_scopes(session: Session, profile: Profile) -> list[str]:
    # without the password, which would need a code of a second factor each time
    client = Client(session.reactor, Target(profile.url, "", _certificates(profile)))
    try:
        found = await client.get("info", "scopes")
    finally:
        await client.close()
    return [each["name"] for each in (*found["scopes"], *found["actions"])]


async def _revoke(session: Session, token_id: str) -> None:
    """Revoke a token; that one has ended already is nothing to mention."""
    try:
        await session.client.change("DELETE", "user", "token", token_id)
    except Failed as error:
        if error.status == 403:
            session.printer.note(f"the token is not revoked: {error}")
        elif error.status not in (401, 404):
            raise


def _certificates(profile: Profile) -> Path | None:
    return Path(profile.ca_file) if profile.ca_file else None


@click.group()
def profile() -> None:
    """Profiles: the servers that you have logged in to."""


@profile.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def list_profiles(*, as_json: bool) -> None:
    """List the profiles; the current one has a star."""
    found = checked(lambda: read_profiles(find_profiles_file(os.environ)))
    records = [
        {"name": name, "url": each.url, "username": each.username, "current": name == found.current}
        for name, each in sorted(found.profiles.items())
    ]
    columns = (
        Column("", lambda each: "*" if each["current"] else " "),
        Column("PROFILE", "name"),
        Column("SERVER", "url"),
        Column("USER", "username"),
    )
    Printer(as_json=as_json).table(columns, records, 'there are no profiles; "pkgrepo login URL" makes one')


@profile.command("use")
@click.argument("name", shell_complete=complete_profiles)
def use_profile(name: str) -> None:
    """Make a profile the current one."""
    path = find_profiles_file(os.environ)
    found = checked(lambda: read_profiles(path))
    chosen = checked(lambda: found.get(name))
    found.current = name
    checked(lambda: write_profiles(path, found))
    Printer(as_json=False).line(f"{name} is used now: {chosen.url}")
