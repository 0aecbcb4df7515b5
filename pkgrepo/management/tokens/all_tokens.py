"""The tokens of everyone, for admins: which of them are used by whom, and which by nobody any more."""

from __future__ import annotations

from pkgrepo.errors import NotFound
from pkgrepo.management.api.access_rules import AUDITORS, USER_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Parameter, Table, sorting
from pkgrepo.management.tokens.schema import TokenRecord
from pkgrepo.management.users.permissions import find_manageable, find_user
from pkgrepo.model import Token, User
from pkgrepo.storage.catalog.people import tokens, users

MOST_DAYS = 36_500
DAY_MS = 86_400_000

table = Table("tokens")


@table.command(
    "user tokens [USER]",
    options="unused-days, without-second-factor",
    columns="OWNER: owner | NAME: name | ID: id | LAST USE: last_used_at:ago | EXPIRES: expires_at or 'never':time",
    nothing="there are none",
    more="Only those that work; never used ones come first.",
)
@table.get(
    "/token",
    AUDITORS,
    "List the tokens of everyone",
    query=[
        Parameter("user", "Only tokens of this user, by id or name."),
        Parameter("unused_days", "Only tokens that were neither used nor made for so many days.", "integer"),
        Parameter(
            "without_second_factor",
            "Only tokens of admins, user managers and system managers who have a password, no second factor and no "
            "passkey; of all people where auth.second_factor is everyone.",
            "boolean",
        ),
        sorting(tokens.TOKEN_ORDERS, "last_used_at"),
    ],
)
async def list_all_tokens(call: Call) -> Page[TokenRecord]:
    """
    Those that work: neither revoked nor expired. Tokens that were never used come first.

    A token needs no second factor, so those that were made before it was required work on.
    """
    user: User | None = await find_user(call, call.query("user")) if call.query("user") else None
    days = call.integer("unused_days", 0, 0, MOST_DAYS)
    everyone = int(call.services.callers.second_factors.required == "everyone")
    wanted = (
        None if user is None else user.id,
        call.now_ms - days * DAY_MS if days else None,
        everyone if call.flag("without_second_factor") else None,
        call.now_ms,
    )
    found: Page[Token] = await call.page(
        tokens.list_working_tokens,
        *wanted,
        by=call.order(tokens.TOKEN_ORDERS, "last_used_at"),
        show=lambda token: token,
        count=(tokens.count_working_tokens, *wanted),
    )
    names = await call.catalog.look(users.usernames, [each.user_id for each in found.items])
    items = [TokenRecord.of(each, names.get(each.user_id, ""), told=call.identity.admin) for each in found.items]
    return Page(items=items, next=found.next, total=found.total)


@table.command("user revoke-token ID", "token {id} is revoked")
@table.delete("/token/<id>", USER_MANAGERS, "Revoke a token of any user", audit="token.revoke")
async def revoke_any_token(call: Call, id: str) -> None:
    """Takes effect at once and cannot be undone. Only admins may do this for admins and system managers."""
    token: Token | None = await call.catalog.look(tokens.find_token_by_uid, id.lower())
    names = {} if token is None else await call.catalog.look(users.usernames, [token.user_id])
    if token is None or token.user_id not in names:
        raise NotFound("token", id)
    owner = await find_manageable(call, names[token.user_id])
    entry = call.entry(token.name, {"owner": owner.username})
    await call.write(entry, tokens.revoke_token, token.id, now_ms=call.now_ms)
