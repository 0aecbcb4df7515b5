"""``pkgrepo token``: your own access tokens."""

from __future__ import annotations

from typing import Any

import click

from pkgrepo.client.generated import add_operations
from pkgrepo.client.named_objects import one_of
from pkgrepo.client.printer import Column, aged, ago, time_with_age
from pkgrepo.client.session import Session, confirmed, remote
from pkgrepo.errors import Invalid


def _repositories(record: Any) -> str:
    if record["repository_access"] != "listed":
        return "all of its owner" if record["repository_access"] == "owner" else "none"
    return ", ".join(each["repository"] for each in record["repositories"])


def _state(record: Any) -> str:
    if record["revoked_at"]:
        return f"revoked {ago(record['revoked_at'])}"
    if record.get("canary"):
        return "canary"
    if not record["expires_at"]:
        return "valid"
    text = ago(record["expires_at"])
    return f"valid, ends {text}" if text.startswith("in ") else f"expired {text}"


COLUMNS = (
    Column("NAME", "name"),
    Column("ID", "id"),
    Column("KIND", "kind"),
    Column("REPOSITORIES", _repositories),
    Column("LAST USE", aged("last_used_at")),
    Column("STATE", _state),
)


SERVICE = click.option("--service", metavar="NAME", help="Of this service account, which you own or may manage.")


def _place(service: str | None) -> tuple[str, ...]:
    """The path of the tokens of a service account, or of the caller."""
    return ("user", "token") if service is None else ("users", service, "token")


@click.group()
def token() -> None:
    """Your access tokens."""


@token.command("list")
@click.option("--all", "every", is_flag=True, help="Also tokens that are revoked or expired.")
@SERVICE
@remote
async def list_tokens(session: Session, *, every: bool, service: str | None) -> None:
    """List your tokens; nobody can read their texts."""
    found = await session.client.all_items(*_place(service))
    none = "you have no tokens" if service is None else f"{service} has no tokens"
    session.printer.table(COLUMNS, found if every else [each for each in found if _is_live(each)], none)


@token.command("show")
@click.argument("token_", metavar="TOKEN")
@remote
async def show_token(session: Session, token_: str) -> None:
    """Show one of your tokens, by its name or id."""
    record = await _find(session, token_)
    opened = [f"{each['repository']}: {', '.join(each['actions'])}" for each in record["repositories"]]
    session.printer.record(
        record,
        [
            ("name", record["name"]),
            ("id", record["id"]),
            ("text", f"{record['shown']} (beginning and end)"),
            ("description", record["description"]),
            ("kind", record["kind"]),
            ("scopes", record["scopes"] or "none"),
            ("repositories", "\n".join(opened) or _repositories(record)),
            ("packages", record["packages"]),
            ("addresses", record["cidrs"]),
            ("state", _state(record)),
            ("created", time_with_age(record["created_at"])),
            ("expires", time_with_age(record["expires_at"])),
            ("last use", time_with_age(record["last_used_at"])),
            ("used from", record["last_used_ip"]),
            ("used by", record["last_used_client"]),
            ("uses", record["uses"]),
        ],
    )


@token.command("create")
@click.argument("name")
@click.option("--description", default="", help="A text for people.")
@click.option("--kind", type=click.Choice(["personal", "service", "ci"]), default="personal", show_default=True)
@click.option(
    "--repository",
    "-r",
    "repositories",
    multiple=True,
    metavar="PATTERN[=ACTIONS]",
    help="Repositories that it opens, such as main/* or main/*=read,write; repeat.",
)
@click.option(
    "--action", "actions", multiple=True, help="What it may do in repositories without =ACTIONS; repeat. [read]"
)
@click.option("--scope", "scopes", multiple=True, help="A scope of the server, such as metrics; repeat.")
@click.option("--package", "packages", multiple=True, metavar="PATTERN", help="Only packages with such names; repeat.")
@click.option("--address", "cidrs", multiple=True, metavar="NETWORK", help="Only for clients there; repeat.")
@click.option("--days", type=click.IntRange(min=1), help="Days until it expires; 90 by default.")
@SERVICE
@remote
async def create_token(
    session: Session,
    name: str,
    description: str,
    kind: str,
    repositories: tuple[str, ...],
    actions: tuple[str, ...],
    scopes: tuple[str, ...],
    packages: tuple[str, ...],
    cidrs: tuple[str, ...],
    days: int | None,
    service: str | None,
) -> None:
    """
    Create a token, and print its text, which nobody can see again.

    Only the text goes to standard output. Without --repository and --scope it opens all repositories that you may use.
    """
    body: dict[str, Any] = {"name": name, "description": description, "kind": kind}
    given = {"scopes": list(scopes), "packages": list(packages), "cidrs": list(cidrs), "expires_in_days": days}
    body |= {key: value for key, value in given.items() if value}
    if repositories:
        body["repositories"] = [_opened(each, actions or ("read",)) for each in repositories]
    _print_new(session, await session.client.change("POST", *_place(service), body=body))


@token.command("canary")
@click.argument("name")
@click.option("--description", default="", help="A text for people, such as where you have left it.")
@remote
async def create_canary(session: Session, name: str, description: str) -> None:
    """
    Create a canary, and print its text: a token that nobody is to use.

    It looks like any other. Leave it where a thief looks: any use is refused as that of a wrong token is, and reported,
    with address, road and program, as an event, in the log, and by "pkgrepo token rings".
    """
    body = {"name": name, "description": description, "canary": True}
    _print_new(session, await session.client.change("POST", "user", "token", body=body))


add_operations(token, "token")


@token.command("rotate")
@click.argument("token_", metavar="TOKEN")
@click.option(
    "--grace", "grace_s", type=click.IntRange(min=0), default=0, metavar="SECONDS", help="The old one lives on."
)
@remote
async def rotate_token(session: Session, token_: str, grace_s: int) -> None:
    """Replace a token by one with the same limits, and print its text."""
    uid = (await _find(session, token_))["id"]
    _print_new(session, await session.client.change("POST", "user", "token", uid, "rotate", body={"grace_s": grace_s}))


@token.command("revoke")
@click.argument("token_", metavar="TOKEN")
@confirmed("Revoke token {token_}, which cannot be undone?")
@SERVICE
@remote
async def revoke_token(session: Session, token_: str, service: str | None) -> None:
    """Revoke a token, by its name or id; this takes effect at once."""
    record = await _find(session, token_, service)
    await session.client.change("DELETE", *_place(service), record["id"])
    session.printer.done(f"revoked token {record['name']}")


async def _find(session: Session, wanted: str, service: str | None = None) -> Any:
    """A live token by its name, or any by its id or the beginning of that. It raises what L{one_of} does."""
    every = await session.client.all_items(*_place(service))
    return one_of([each for each in every if _is_live(each) or each["id"].startswith(wanted.lower())], wanted.lower())


def _print_new(session: Session, made: Any) -> None:
    if session.printer.as_json:
        session.printer.json(made)
        return
    until = f", valid until {time_with_age(made['expires_at'])}" if made["expires_at"] else ""
    session.printer.note(f"token {made['name']} ({made['id']}){until}; it is shown this once:")
    for each in made["notes"]:
        session.printer.note(each)
    session.printer.line(made["token"])


def _opened(text: str, default: tuple[str, ...]) -> dict[str, Any]:
    pattern, equals, actions = text.partition("=")
    if not pattern or (equals and not actions):
        raise Invalid(f"--repository takes PATTERN=ACTIONS, such as main/*=read,write, not {text!r}")
    return {"repository": pattern, "actions": actions.split(",") if equals else list(default)}


def _is_live(record: Any) -> bool:
    return not record["revoked_at"] and not _state(record).startswith("expired")
