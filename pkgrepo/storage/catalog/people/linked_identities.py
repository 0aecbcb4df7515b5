"""
Accounts of people at identity providers, and the users of this server that they are linked to.

A link is made once, by issuer and subject, which a provider never gives to another person (OpenID Connect Core 1.0
section 5.7). Names and e-mail addresses are only looked at when there is no link yet.

``given`` is what logins gave the user: the ids of groups, and whether the admin flag. It is taken away again when the
claims give it no longer; what was given to the user otherwise stays. It also has the name and the address that the
provider told last: those of the user follow when they change there, and what was changed here stays until then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from attrs import frozen

from pkgrepo.errors import AlreadyExists, Conflict, Forbidden
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import TokenKind, User, UserKind
from pkgrepo.storage.catalog.rows import column, dump, every, find, insert, load, rows, update

from .groups import add_group_member, find_group, remove_group_member
from .passkeys import remove_passkeys
from .users import add_user, ascii_lower, bump_generation, bump_identity_serial, get_user, password_hash, update_user


@frozen
class LinkedIdentity:
    """One link; ``refresh`` is what the daily check needs, such as a sealed refresh token; empty if there is none."""

    id: int
    issuer: str
    subject: str
    user_id: int
    given: Mapping[str, Any]
    refresh: str
    created_at: datetime
    checked_at: datetime


@frozen
class Person:
    """
    What a provider says of a person who has logged in there.

    ``username`` is empty if no user may have it: ``called`` is what the provider says. ``email`` is empty unless it is
    verified. ``admin`` is None if the claims do not decide about the flag.
    """

    issuer: str
    subject: str
    username: str
    name: str
    email: str
    groups: Collection[str]
    admin: bool | None
    called: str = ""


_SELECT, _linked = rows(LinkedIdentity, "linked_identity", given=load)


def find_linked(r: Reader, issuer: str, subject: str) -> LinkedIdentity | None:
    """The link of an account at a provider, or None."""
    return find(r, _linked, f"{_SELECT} WHERE issuer = ? AND subject = ?", (issuer, subject))


def issuers_of(r: Reader, user_id: int) -> list[str]:
    """The issuers of the links of a user."""
    return column(r, "SELECT DISTINCT issuer FROM linked_identity WHERE user_id = ?", (user_id,))


def linked_to_check(r: Reader, issuer: str, before_ms: int, limit: int) -> list[LinkedIdentity]:
    """Links at a provider that can be checked, and were so last before this time, the oldest first."""
    sql = f"{_SELECT} WHERE issuer = ? AND refresh <> '' AND checked_at < ? ORDER BY checked_at, id LIMIT ?"
    return every(r, _linked, sql, (issuer, before_ms, limit))


def ensure_linked(
    tx: Transaction, person: Person, *, auto_create: bool, link_by_email: bool, refresh: str, now_ms: int
) -> tuple[User, LinkedIdentity]:
    """
    The user of a person who has logged in at a provider, with the groups and the admin flag of now.

    Without a link, the one active user with the person's verified e-mail address is linked if ``link_by_email``, else a
    user is made if ``auto_create``. A name alone links nobody.

    :raises Forbidden: there is no such user and none may be made, or it is not active
    """
    linked = find_linked(tx, person.issuer, person.subject)
    if linked is None:
        user = _find_by_email(tx, person) if link_by_email and person.email else None
        if user is None:
            user = _create(tx, person, now_ms) if auto_create else None
        if user is None:
            raise Forbidden("there is no account here for this person, and logins make none (auto_create)")
        linked_id = insert(
            tx,
            "linked_identity",
            issuer=person.issuer,
            subject=person.subject,
            user_id=user.id,
            created_at=now_ms,
            checked_at=now_ms,
        )
        linked = find_linked(tx, person.issuer, person.subject)
        assert linked is not None and linked.id == linked_id  # noqa: PT018
    user = get_user(tx, linked.user_id)
    if not user.active:
        raise Forbidden("this account is not active")
    apply_claims(tx, linked, person, now_ms=now_ms)
    update(tx, "linked_identity", linked.id, refresh=refresh, checked_at=now_ms)
    tx.execute("UPDATE account SET last_login_at = ? WHERE id = ?", (now_ms, user.id))
    return get_user(tx, user.id), linked


def find_settled(r: Reader, person: Person, since_ms: int) -> User | None:
    """
    The active user of a person whose login would change nothing; None if it changes something, or is the first one.

    It would also be recorded as the last login if that is ``since_ms`` or older.
    """
    linked = find_linked(r, person.issuer, person.subject)
    if linked is None or not linked.refresh or linked.checked_at.timestamp() * 1000 <= since_ms:
        return None
    user = get_user(r, linked.user_id)
    plan = _plan(r, linked, user, person)
    is_settled = not (plan.join or plan.leave) and plan.admin == user.admin and plan.given == linked.given
    return user if user.active and is_settled else None


def apply_claims(tx: Transaction, linked: LinkedIdentity, person: Person, *, now_ms: int) -> None:
    """Give the user the groups and the admin flag of the claims, and take away what earlier claims gave."""
    user = get_user(tx, linked.user_id)
    plan = _plan(tx, linked, user, person)
    for group_id in plan.join:
        add_group_member(tx, group_id, user.id)
    for group_id in plan.leave:
        remove_group_member(tx, group_id, user.id)
    given = plan.given
    if plan.news:
        name, email = (plan.news.get(key, getattr(user, key)) for key in ("name", "email"))
        update_user(tx, user.id, now_ms=now_ms, name=name, email=email)
    if plan.admin != user.admin:
        try:
            update_user(tx, user.id, now_ms=now_ms, admin=plan.admin)
        except Conflict:  # the last admin stays one
            given = {**given, "admin": True}
    if given != linked.given:
        update(tx, "linked_identity", linked.id, given=dump(given))


@frozen
class _Plan:
    """What claims change: groups to join and to leave (ids), the flag, name and address, and what they give then."""

    join: Collection[int]
    leave: Collection[int]
    admin: bool
    news: Mapping[str, str]
    given: Mapping[str, Any]


def _plan(r: Reader, linked: LinkedIdentity, user: User, person: Person) -> _Plan:
    before, made_admin = set(linked.given.get("groups", ())), bool(linked.given.get("admin"))
    found = {name: find_group(r, name) for name in person.groups}
    # not those that are found by their id, or without spaces
    groups = {group.id for name, group in found.items() if group is not None and group.key == ascii_lower(name)}
    member_of = set(column(r, "SELECT group_id FROM group_member WHERE user_id = ?", (user.id,)))
    admin = user.admin
    if person.admin and not user.admin:
        admin = made_admin = True
    elif person.admin is False and user.admin and made_admin:
        admin = made_admin = False
    told = {key: text for key, text in (("name", person.name), ("email", person.email)) if text}
    news = {key: text for key, text in told.items() if linked.given.get(key, text) != text}
    kept = {key: linked.given[key] for key in ("name", "email") if key in linked.given}
    given = {**kept, **told, "groups": sorted((groups - member_of) | (groups & before)), "admin": made_admin}
    return _Plan(groups - member_of, (before - groups) & member_of, admin, news, given)


def note_checked(tx: Transaction, linked: LinkedIdentity, *, refresh: str, now_ms: int) -> None:
    """Record that a provider still knows a person; ``refresh`` is what the next check needs."""
    update(tx, "linked_identity", linked.id, refresh=refresh, checked_at=now_ms)


def end_sessions_of(
    tx: Transaction, issuer: str, *, subject: str = "", sid: str = "", tokens: bool = False, now_ms: int
) -> list[str]:
    """
    End the sessions that a person began at a provider: all of a subject, or those of one session there (``sid``).

    Returns the names of the users whose sessions ended. With ``tokens`` those of the users are revoked, too, as
    ``end_linked`` does; then a subject without sessions is also one of them.
    """
    wanted = "SELECT id FROM linked_identity WHERE issuer = ? AND (? = '' OR subject = ?)"
    users = column(
        tx,
        f"SELECT DISTINCT user_id FROM session WHERE linked_id IN ({wanted}) AND (? = '' OR sid = ?)",
        (issuer, subject, subject, sid, sid),
    )
    sql = f"DELETE FROM session WHERE linked_id IN ({wanted}) AND (? = '' OR sid = ?)"
    tx.execute(sql, (issuer, subject, subject, sid, sid))
    if tokens and subject:
        linked = find_linked(tx, issuer, subject)
        users = sorted({*users, *([] if linked is None else [linked.user_id])})
    for user_id in users:
        if tokens:
            _revoke_tokens(tx, user_id, now_ms)
        bump_generation(tx, user_id)
    return [get_user(tx, each).username for each in users]


def end_linked(tx: Transaction, linked: LinkedIdentity, *, now_ms: int) -> User:
    """
    End everything of a person whom the provider knows no more: the sessions from there, what claims gave, and tokens.

    Of a user who also has a password here, access tokens, passkeys and the sessions that began with a password stay,
    since the provider is not the only way in.
    """
    nobody = Person(linked.issuer, linked.subject, "", "", "", (), admin=False)
    apply_claims(tx, linked, nobody, now_ms=now_ms)
    tx.execute("DELETE FROM session WHERE linked_id = ?", (linked.id,))
    if not password_hash(tx, linked.user_id):  # then the password of sessions and passkeys was that of a directory
        tx.execute("DELETE FROM session WHERE user_id = ? AND linked_id IS NULL", (linked.user_id,))
        remove_passkeys(tx, linked.user_id)
    _revoke_tokens(tx, linked.user_id, now_ms)
    bump_generation(tx, linked.user_id)
    update(tx, "linked_identity", linked.id, refresh="", checked_at=now_ms)
    bump_identity_serial(tx)
    return get_user(tx, linked.user_id)


def _revoke_tokens(tx: Transaction, user_id: int, now_ms: int) -> None:
    """Revoke the tokens of a user; of one who also has a password here only those of logins."""
    has_password = bool(password_hash(tx, user_id))
    kinds = "AND kind = ?" if has_password else "AND kind <> ?"
    kind = TokenKind.LOGIN.value if has_password else ""
    sql = f"UPDATE token SET revoked_at = ? WHERE user_id = ? AND revoked_at IS NULL {kinds}"
    tx.execute(sql, (now_ms, user_id, kind))


def _find_by_email(tx: Transaction, person: Person) -> User | None:
    """
    The only active person with a verified e-mail address; None if there is none, or several.

    Addresses with other characters than those of ASCII link nobody: some of them look like these, or fold into them.
    """
    if not person.email.isascii():
        return None
    wanted = ascii_lower(person.email)
    sql = "SELECT id, email FROM account WHERE lower(email) = ? AND active = 1 AND kind = ?"
    # lower() of PostgreSQL also folds other letters
    found = [user_id for user_id, email in tx.all(sql, (wanted, UserKind.PERSON.value)) if ascii_lower(email) == wanted]
    return get_user(tx, found[0]) if len(found) == 1 else None


def _create(tx: Transaction, person: Person, now_ms: int) -> User:
    if not person.username:
        if not person.called:
            reason = "the provider does not tell the name of this person (username_claim or username_attribute)"
            raise Forbidden(f"no account can be made: {reason}")
        raise Forbidden(
            f"no account can be made for '{person.called}': a user name has 3 to 32 letters from a to z, digits, '.', "
            "'_' or '-', and begins with a letter or digit (username_claim or username_attribute names another)"
        )
    try:
        return add_user(tx, username=person.username, name=person.name, email=person.email, now_ms=now_ms)
    except AlreadyExists:
        raise Forbidden(
            f"the name {person.username!r} is taken by an account that is not linked to this person"
        ) from None
