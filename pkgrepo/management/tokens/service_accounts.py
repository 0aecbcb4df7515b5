"""The routes to the tokens of service accounts, for their owners and for user managers."""

from __future__ import annotations

from pkgrepo.errors import Conflict, Forbidden, NotFound
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Created, Table, sorting
from pkgrepo.management.tokens.routes import issue
from pkgrepo.management.tokens.schema import NewToken, NewTokenRecord, TokenRecord
from pkgrepo.management.users.permissions import find_manageable
from pkgrepo.management.users.schema import UserRecord
from pkgrepo.model import SubjectKind, Token, TokenKind, User, UserKind
from pkgrepo.storage.catalog.people import groups, tokens, users

table = Table("service accounts")


@table.command(
    "user services",
    columns="SERVICE: username | NAME: name | OWNER: owner:owner | STATE: active:active/off",
    about="List the service accounts that you own, or a group that you are in.",
    nothing="you own no service accounts",
)
@table.get("/user/services", ACCOUNT_HOLDERS, "List the service accounts that the caller owns")
async def list_services(call: Call) -> list[UserRecord]:
    """Those of the caller, and those of the groups that the caller is a member of."""
    if call.identity.user_id is None:
        return []
    return [UserRecord.of(each) for each in await call.catalog.look(users.services_of, call.identity.user_id)]


@table.get(
    "/users/<id>/token",
    ACCOUNT_HOLDERS,
    "List the tokens of a service account",
    query=[sorting(tokens.TOKEN_ORDERS, "created_at")],
    refused=((409, "The account is that of a person, who alone makes its tokens."),),
)
async def list_tokens(call: Call, id: str) -> Page[TokenRecord]:
    """For its owner, the members of the group that owns it, and user managers; others are answered 404."""
    service = await _find(call, id)
    return await call.page(
        tokens.list_tokens,
        service.id,
        by=call.order(tokens.TOKEN_ORDERS, "created_at"),
        show=lambda token: TokenRecord.of(token, service.username),
        count=(tokens.count_tokens, service.id),
    )


@table.post("/users/<id>/token", ACCOUNT_HOLDERS, "Create a token of a service account", audit="token.create")
async def create_token(call: Call, body: NewToken, id: str) -> Created[NewTokenRecord]:
    """
    For its owner, the members of the group that owns it, and user managers; others are answered 404.

    The new token cannot allow more than the token that the caller uses. Only admins make tokens of a service account
    that is an admin, user manager or system manager.
    """
    service = await _find(call, id)
    if body.kind is TokenKind.PERSONAL:
        body.kind = TokenKind.SERVICE
    token, text = await issue(call, body, service.id)
    record = NewTokenRecord.of(token, service.username, token=text, notes=list(call.request.notes))
    return Created(record, f"/api/users/{service.uid}/token")


@table.delete("/users/<id>/token/<token>", ACCOUNT_HOLDERS, "Revoke a token of a service account", audit="token.revoke")
async def revoke_token(call: Call, id: str, token: str) -> None:
    """Takes effect at once and cannot be undone. The token stays in the list."""
    service = await _find(call, id)
    found: Token | None = await call.catalog.look(tokens.find_token_by_uid, token.lower())
    if found is None or found.user_id != service.id:
        raise NotFound("token", token)
    entry = call.entry(found.name, {"owner": service.username})
    await call.write(entry, tokens.revoke_token, found.id, now_ms=call.now_ms)


async def _find(call: Call, id: str) -> User:
    """
    The service account whose tokens the caller may manage.

    :raises NotFound: it does not exist, or the caller may not know; :raises Forbidden: only admins manage it
    :raises Conflict: it is a person, whose tokens are that person's alone
    """
    manages = await call.services.callers.authorizer.may_use(call.identity, "users")
    user: User | None = await call.catalog.look(users.find_user_by_id, id)
    if user is None or not (manages or await _owns(call, user)):
        raise NotFound("user", id)
    if user.kind is not UserKind.SERVICE:
        raise Conflict(f"{user.username} is a person, who alone makes tokens of that account")
    if user.user_manager and not call.identity.admin:
        raise Forbidden(f"only admins make or revoke tokens of {user.username!r}")
    return await find_manageable(call, user.uid)


async def _owns(call: Call, user: User) -> bool:
    owner, caller = user.owner, call.identity.user_id
    if owner is None or caller is None or user.kind is not UserKind.SERVICE:
        return False
    if owner.kind is SubjectKind.USER:
        return owner.subject_id == caller
    return bool(await call.catalog.look(groups.is_member, owner.subject_id, caller))
