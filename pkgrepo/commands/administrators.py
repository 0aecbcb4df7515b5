"""Administrators: create one, reset a password, unlock a login."""

from __future__ import annotations

from ipaddress import ip_address
from typing import IO

import click

from pkgrepo.auth.login.identities import check_username
from pkgrepo.auth.login.passwords import generate_password
from pkgrepo.client.terminal import EXIT_CODES, fail
from pkgrepo.composition.core import Core
from pkgrepo.errors import Invalid, NotFound, existing
from pkgrepo.storage.catalog.people import logins, second_factors, users

from .offline import check_catalog, run_offline
from .settings import Sources


@click.group()
def admin() -> None:
    """Create administrators, reset passwords, remove second factors, unblock logins."""


@admin.command("create")
@click.argument("username")
@click.option("--password-file", type=click.File(), help="Read the password from a file (- means standard input).")
@click.option("--generate", is_flag=True, help="Generate a password and print it.")
@click.pass_obj
def create_admin(sources: Sources, username: str, password_file: IO[str] | None, *, generate: bool) -> None:
    """Create an administrator."""
    config = sources.read()
    try:
        check_username(username)
    except Invalid as error:
        fail(str(error), EXIT_CODES[Invalid])
    password = _password(password_file, generate=generate)

    async def create(core: Core) -> None:
        core.passwords.check(password, username=username)
        hashed = await core.passwords.hash(password)
        await core.catalog.write(
            users.add_user, username=username, password_hash=hashed, admin=True, now_ms=core.clock.now_ms()
        )
        click.echo(f"administrator {username} was added" + _shown(password, generate=generate))

    run_offline(config, create)


@admin.command("reset-password")
@click.argument("username")
@click.option("--password-file", type=click.File(), help="Read the password from a file (- means standard input).")
@click.option("--generate", is_flag=True, help="Generate a password and print it.")
@click.pass_obj
def reset_password(sources: Sources, username: str, password_file: IO[str] | None, *, generate: bool) -> None:
    """Set a new password of a user; this revokes bearer and login tokens, but no other access tokens."""
    config = sources.read()
    check_catalog(config)
    password = _password(password_file, generate=generate)

    async def reset(core: Core) -> None:
        core.passwords.check(password, username=username)
        user = existing(await core.catalog.look(users.find_user_by_name, username), "user", username)
        hashed = await core.passwords.hash(password)
        await core.catalog.write(users.set_password, user.id, hashed, now_ms=core.clock.now_ms())
        click.echo(f"{username} has a new password" + _shown(password, generate=generate))

    run_offline(config, reset)


@admin.command("remove-second-factor")
@click.argument("username")
@click.pass_obj
def remove_second_factor(sources: Sources, username: str) -> None:
    """Remove the second factor of a user who has lost it; the password alone logs in again."""
    config = sources.read()
    check_catalog(config)

    async def remove(core: Core) -> None:
        user = existing(await core.catalog.look(users.find_user_by_name, username), "user", username)
        if not await core.catalog.write(second_factors.remove_second_factor, user.id, now_ms=core.clock.now_ms()):
            raise NotFound("second factor of", username)
        click.echo(f"the password of {username} needs no code any more")

    run_offline(config, remove)


@admin.command("unlock")
@click.argument("username", required=False, default="")
@click.option("--address", default="", help="Unblock an IP address and its network, with or without a user name.")
@click.pass_obj
def unlock(sources: Sources, username: str, address: str) -> None:
    """Unblock logins after too many wrong passwords; a running server applies this at the next login."""
    config = sources.read()
    check_catalog(config)
    if not username and not address:
        raise click.UsageError("name a user, or an address with --address")
    if address:
        try:
            address = str(ip_address(address))
        except ValueError as error:
            fail(str(error), 2)

    async def lift(core: Core) -> None:
        if username and await core.catalog.look(users.find_user_by_name, username) is None:
            raise NotFound("user", username)
        await core.catalog.write(logins.add_unlock, username=username, address=address, now_ms=core.clock.now_ms())
        click.echo(f"logins of {' and '.join(filter(None, (username, address)))} are not blocked any more")

    run_offline(config, lift)


def _password(file: IO[str] | None, *, generate: bool) -> str:
    if generate:
        return generate_password()
    if file is not None:
        try:
            return str(file.read()).rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            fail(f"{file.name} holds no password: {error}", 2)
    return str(click.prompt("Password", hide_input=True, confirmation_prompt=True))


def _shown(password: str, *, generate: bool) -> str:
    return f": {password}" if generate else ""
