"""``pkgrepo user``: the users of a server, and what they may do."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import IO, Any

import click

from pkgrepo.client.generated import add_operations
from pkgrepo.client.printer import time_with_age
from pkgrepo.client.session import Session, remote
from pkgrepo.client.terminal import ask_secret, read_secret
from pkgrepo.errors import Invalid

OWNER = click.option("--owner", metavar="USER", help="The person who makes and revokes the tokens of the service.")
OWNER_GROUP = click.option("--owner-group", metavar="GROUP", help="A group whose members do so; it outlives people.")
FLAGS = ("admin", "user_manager", "system_manager")

ADMIN = click.option("--admin/--no-admin", default=None, help="May do everything.")
USER_MANAGER = click.option("--user-manager/--no-user-manager", default=None, help="May manage users.")
SYSTEM_MANAGER = click.option("--system-manager/--no-system-manager", default=None, help="May manage repositories.")


def _flags(record: dict[str, Any]) -> list[str]:
    return [each.replace("_", " ") for each in FLAGS if record[each]]


def _owner(record: dict[str, Any]) -> str:
    owner = record["owner"]
    return "" if owner is None else f"group {owner['name']}" if owner["kind"] == "group" else owner["name"]


def asking_password(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the parameter ``password``, from a file or from the person at the terminal, who types it twice."""

    @click.option("--password-file", type=click.File(), help="Read the password from a file (- means standard input).")
    @wraps(command)
    def run(*, password_file: IO[str] | None, **given: Any) -> None:
        command(password=ask_secret(password_file, repeated=True), **given)

    return run


@click.group()
def user() -> None:
    """Users of a server, by its API."""


@user.command("show")
@click.argument("username")
@remote
async def show_user(session: Session, username: str) -> None:
    """Show a user with the grants in repositories."""
    record = await session.client.get("users", username)
    permissions = await session.client.get("users", username, "permissions")
    grants = [f"{each['repository']}: {', '.join(each['actions']) or 'none'}" for each in permissions["repositories"]]
    session.printer.record(
        {**record, "permissions": permissions},
        [
            ("user", record["username"]),
            ("id", record["id"]),
            ("name", record["name"]),
            ("email", record["email"]),
            ("kind", record["kind"]),
            ("owner", _owner(record)),
            ("active", record["active"]),
            ("is", _flags(record)),
            ("created", time_with_age(record["created_at"])),
            ("last login", time_with_age(record["last_login_at"])),
            ("default actions", record["default_repository_actions"] or "none"),
            ("grants", "\n".join(grants)),
        ],
    )


@user.command("create")
@click.argument("username")
@click.option("--name", default="", help="The person's name.")
@click.option("--email", default="", help="The email address.")
@click.option("--service", is_flag=True, help="A service has tokens and no password.")
@click.option("--invite", is_flag=True, help="Print a link with which the person chooses a password, within a day.")
@click.option("--password-file", type=click.File(), help="Read the password from a file (- means standard input).")
@click.option(
    "--default-action", "actions", multiple=True, help="An action in all repositories without a grant; repeat."
)
@OWNER
@OWNER_GROUP
@ADMIN
@USER_MANAGER
@SYSTEM_MANAGER
@remote
async def create_user(
    session: Session,
    /,
    username: str,
    name: str,
    email: str,
    *,
    service: bool,
    invite: bool,
    password_file: IO[str] | None,
    actions: tuple[str, ...],
    owner: str | None,
    owner_group: str | None,
    **flags: bool | None,
) -> None:
    """Add a user; without a password, one is set later by "pkgrepo user password", or by the person with a link."""
    if invite and (service or password_file is not None):
        raise Invalid("--invite is for a person without a password")
    body: dict[str, Any] = {
        "username": username,
        "name": name,
        "email": email,
        "kind": "service" if service else "person",
        "default_repository_actions": list(actions),
        **_given({**flags, "owner": _asked_owner(owner, owner_group)}),
    }
    if password_file is not None:
        body["password"] = read_secret(password_file)
    made = await session.client.change("POST", "users", body=body)
    if invite:
        _print_link(session, await _make_link(session, username))
    else:
        session.printer.done(f"added user {username}", made)


@user.command("password")
@click.argument("username")
@asking_password
@remote
async def set_password(session: Session, username: str, password: str) -> None:
    """Set the password of a user, which revokes their logins."""
    await session.client.change("PUT", "users", username, "password", body={"password": password})
    session.printer.done(f"{username} has a new password")


@user.command("password-link")
@click.argument("username")
@click.option("--hours", type=click.IntRange(1, 168), default=24, show_default=True, help="How long it can be used.")
@remote
async def make_link(session: Session, username: str, hours: int) -> None:
    """
    Make a link with which a person chooses a password, once, and print it.

    Give it to nobody else. It replaces an earlier one, and ends with every change of the password.
    """
    _print_link(session, await _make_link(session, username, hours))


@user.command("logout")
@click.argument("username")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@remote
async def end_sessions(session: Session, username: str, ids: tuple[str, ...]) -> None:
    """
    End logins of a user in browsers, all of them unless some are named.

    Access tokens stay valid; "pkgrepo user edit USER --inactive" ends these, too.
    """
    for each in ids:
        await session.client.change("DELETE", "users", username, "sessions", each)
    ended = len(ids) if ids else (await session.client.change("DELETE", "users", username, "sessions"))["ended"]
    session.printer.done(f"ended {ended} {'login' if ended == 1 else 'logins'} of {username}")


add_operations(user, "user")


async def _make_link(session: Session, username: str, hours: int = 24) -> Any:
    return await session.client.change("POST", "users", username, "password-link", body={"hours": hours})


def _print_link(session: Session, made: Any) -> None:
    if session.printer.as_json:
        session.printer.json(made)
        return
    until = time_with_age(made["expires_at"])
    session.printer.note(f"{made['username']} can choose a password with this link, once, until {until}:")
    session.printer.line(made["url"])


def _asked_owner(user: str | None, group: str | None) -> dict[str, str | None] | None:
    return None if user is None and group is None else {"user": user, "group": group}


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
