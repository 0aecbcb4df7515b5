"""
Logins of people at OpenID Connect providers: authorization code with PKCE (RFC 7636), state and nonce.

=========  ==========================================================================================================
begin      the browser gets a sealed cookie with state, nonce and the PKCE verifier, and goes to the provider
end        the provider sends it back with a code and the state, which must be that of the cookie; the code is exchanged
           for an identity token, whose nonce must be that of the cookie, once
afterwards a logout token of the provider ends sessions (back-channel logout); with a refresh token the provider is
           asked daily whether it still knows the person
=========  ==========================================================================================================

Nothing is stored until the identity token is verified. A provider that is away delays nobody else: requests to it are
bounded in time and number.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from hmac import compare_digest
from typing import Any, Final
from urllib.parse import quote, urlencode

from attrs import frozen
from twisted.logger import Logger
from zope.interface import implementer

from pkgrepo.auth.external_accounts import MOST_TEXT, IProvider, Known, printable_text
from pkgrepo.errors import Forbidden, IdentityRefused, NotFound, SecretUnreadable
from pkgrepo.interfaces import ICatalog, Transaction
from pkgrepo.model import Actor, User
from pkgrepo.storage.catalog.people.linked_identities import (
    LinkedIdentity,
    Person,
    end_sessions_of,
    ensure_linked,
    note_checked,
)
from pkgrepo.storage.catalog.people.pipelines import spend_token
from pkgrepo.storage.catalog.server.audit import Entry, append_entry
from pkgrepo.storage.secret_box import SecretBox

from .documents import Documents, check_address
from .identity_tokens import SKEW_S, IdentityToken, parse
from .providers import GrantRefused, Provider, ask_tokens, ask_userinfo, check_methods, person_of, read_identity

log = Logger()

PATIENCE_S: Final = 600  # seconds from the beginning of a login to its end
MOST_CODE: Final = 4096  # characters of a code
OFFLINE: Final = "offline_access"
LOGOUT_EVENT: Final = "http://schemas.openid.net/event/backchannel-logout"
_COOKIE: Final = "login at an identity provider"
_REFRESH: Final = "refresh token of an identity provider"


@frozen
class Begun:
    """Where the browser goes, and the value of the cookie that it has to bring back."""

    url: str
    cookie: str


@frozen
class Ended:
    """The user who has logged in, the link, the session at the provider, and the page to show then."""

    user: User
    linked: LinkedIdentity
    sid: str
    target: str


class SignOn:
    """
    Logs people in at the ``providers``. ``now_s`` returns seconds since the epoch.

    ``copy_entry`` is called with each row of the audit log once it is durable.
    """

    def __init__(
        self,
        providers: Sequence[Provider],
        documents: Documents,
        *,
        catalog: ICatalog,
        box: SecretBox,
        now_s: Callable[[], float],
        copy_entry: Callable[[Entry], None],
    ) -> None:
        self._providers = {each.name: each for each in providers}
        self._documents = documents
        self._catalog = catalog
        self._box = box
        self._now_s = now_s
        self._copy_entry = copy_entry

    @property
    def names(self) -> list[str]:
        """The names of the providers."""
        return list(self._providers)

    def name_of(self, issuer: str) -> str:
        """The name of the provider with this issuer; the issuer itself if the settings name it no more."""
        return next((each.name for each in self._providers.values() if each.issuer.url == issuer), issuer)

    def sources(self) -> list[OidcSource]:
        """The providers as those that the daily check asks."""
        return [OidcSource(self, each) for each in self._providers.values()]

    async def begin(self, name: str, redirect_uri: str, target: str) -> Begun:
        """
        Begin a login; ``target`` is the page to show after it.

        :raises NotFound: there is no such provider; :raises IssuerUnavailable: it cannot be used now
        """
        provider = self._find(name)
        metadata = await provider.issuer.metadata()
        endpoint = check_address(name, metadata.get("authorization_endpoint"))
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        query = {
            "response_type": "code",
            "client_id": provider.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(provider.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": _base64(hashlib.sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
        }
        if OFFLINE in provider.scopes:
            query["prompt"] = "consent"  # OpenID Connect Core 1.0 section 11: else no refresh token is given
        if provider.acr_values:
            query["acr_values"] = " ".join(provider.acr_values)
        until = int(self._now_s()) + PATIENCE_S
        parts = [name, state, nonce, verifier, str(until), target]
        return Begun(
            f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query, quote_via=quote)}",
            self._box.seal("\n".join(parts), _COOKIE),
        )

    async def end(self, name: str, redirect_uri: str, cookie: str, answer: Mapping[str, str]) -> Ended:
        """
        End a login with what the provider sent along: ``code`` and ``state``, or ``error``.

        :raises NotFound: there is no such provider; :raises IssuerUnavailable: it cannot be used now
        :raises IdentityRefused: this browser began no such login, or the provider's answer is not right
        :raises Forbidden: the person has no account here
        """
        try:
            return await self._end(name, redirect_uri, cookie, answer)
        except (IdentityRefused, Forbidden) as error:
            log.info("a login at {provider} is refused: {reason}", provider=name, reason=str(error))
            raise

    async def _end(self, name: str, redirect_uri: str, cookie: str, answer: Mapping[str, str]) -> Ended:
        provider = self._find(name)
        nonce, verifier, target, until_s = self._opened(provider, cookie, answer.get("state", ""))
        metadata = await provider.issuer.metadata()
        # RFC 9207 section 2.4: a provider that says so always names itself
        named = metadata.get("authorization_response_iss_parameter_supported") is True
        if answer.get("iss", "" if named else provider.issuer.url) != provider.issuer.url:
            raise IdentityRefused("the answer came from another provider")
        if error := printable_text(answer.get("error")):
            told = printable_text(answer.get("error_description"))
            raise IdentityRefused(f"the provider {name!r} refuses the login: {error}{f' ({told})' if told else ''}")
        code = answer.get("code", "")
        if not code or len(code) > MOST_CODE:
            raise IdentityRefused("the provider sent no code")
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri}
        tokens = await ask_tokens(self._documents, provider, {**form, "code_verifier": verifier})
        token, claims = await self._read(provider, tokens, nonce)
        check_methods(provider, token.claims)
        person = person_of(provider, token, claims)
        # Keycloak also gives one that was not asked for, which ends with the login there: it tells of nobody's leaving
        refresh = tokens.get("refresh_token") if OFFLINE in provider.scopes else None
        sealed = self._box.seal(refresh, _REFRESH) if isinstance(refresh, str) else ""
        user, linked = await self._catalog.write(
            _link_once,
            hashlib.sha256(f"{_COOKIE}\0{nonce}".encode()).digest(),
            until_s * 1000,
            person,
            auto_create=provider.auto_create,
            link_by_email=provider.link_by_email,
            refresh=sealed,
            now_ms=self._now_ms(),
        )
        sid = claims.get("sid")
        log.info("{user} logged in at {provider}", user=user.username, provider=name)
        return Ended(user, linked, sid[:MOST_TEXT] if isinstance(sid, str) else "", target)

    async def end_by_provider(self, name: str, text: str, actor: Actor) -> None:
        """
        End sessions by a logout token (OpenID Connect Back-Channel Logout 1.0 section 2.6).

        :raises NotFound: there is no such provider; :raises IdentityRefused: the token is not right, or was used before
        """
        provider = self._find(name)
        token = parse(text, kinds=("logout+jwt", "jwt", ""))
        if token.issuer != provider.issuer.url:
            raise IdentityRefused("the logout token is of another issuer")
        found = await provider.issuer.verify(token, [provider.client_id], self._now_s(), needed=("jti", "events"))
        events, sid, subject = (found.claims.get(each) for each in ("events", "sid", "sub"))
        if not isinstance(events, dict) or LOGOUT_EVENT not in events or "nonce" in found.claims:
            raise IdentityRefused("this is no logout token")
        if not (sid or subject) or not isinstance(sid or subject, str):
            raise IdentityRefused("the logout token names neither a session nor a person")
        await self._write(_end_sessions, provider, found, str(subject or ""), str(sid or ""), actor, self._now_ms())

    async def ask(self, provider: Provider, linked: LinkedIdentity) -> Known | None:
        """
        What a provider says of a person whose refresh token it gave, see L{IProvider}.

        :raises IssuerUnavailable: it cannot be used now; :raises IdentityRefused: it tells of another person
        """
        if OFFLINE not in provider.scopes:
            return Known("", None)
        try:
            refresh = self._box.open(linked.refresh, _REFRESH)
        except SecretUnreadable:
            return Known("", None)
        try:
            tokens = await ask_tokens(
                self._documents, provider, {"grant_type": "refresh_token", "refresh_token": refresh}
            )
        except GrantRefused:
            return None
        renewed = tokens.get("refresh_token")
        sealed = self._box.seal(renewed, _REFRESH) if isinstance(renewed, str) else linked.refresh
        person = None
        if isinstance(renewed, str):  # the old one may be of no use any more
            await self._catalog.write(note_checked, linked, refresh=sealed, now_ms=self._now_ms())
        claims = await ask_userinfo(self._documents, provider, tokens, linked.subject)
        if "id_token" in tokens:  # OpenID Connect Core 1.0 section 12.2: as complete as that of a login
            token = await read_identity(provider, tokens, self._now_s())
            if token.subject != linked.subject:
                raise IdentityRefused("the provider tells of another person")
            claims = {**claims, **token.claims}
        if provider.groups_claim in claims or "id_token" in tokens:
            person = person_of(provider, IdentityToken(linked.issuer, linked.subject, 0, claims, b""), claims)
        return Known(sealed, person)

    def _find(self, name: str) -> Provider:
        found = self._providers.get(name)
        if found is None:
            raise NotFound("provider", name)
        return found

    def _opened(self, provider: Provider, cookie: str, state: str) -> tuple[str, str, str, int]:
        """Nonce, PKCE verifier and target of the login that this browser began, and until when it may end."""
        try:
            name, wanted, nonce, verifier, until, target = self._box.open(cookie, _COOKIE).split("\n", 5)
        except (SecretUnreadable, ValueError):
            raise IdentityRefused("this browser has begun no login: begin it again") from None
        if name != provider.name or not compare_digest(wanted.encode(), state.encode("utf-8", "replace")):
            raise IdentityRefused("this answer belongs to another login: begin it again")
        if self._now_s() > int(until):
            raise IdentityRefused("the login took too long: begin it again")
        return nonce, verifier, target, int(until)

    async def _read(
        self, provider: Provider, tokens: Mapping[str, Any], nonce: str
    ) -> tuple[IdentityToken, Mapping[str, Any]]:
        token = await read_identity(provider, tokens, self._now_s())
        found = token.claims.get("nonce")
        if not isinstance(found, str) or not compare_digest(found.encode("utf-8", "replace"), nonce.encode()):
            raise IdentityRefused("the identity token belongs to another login")
        return token, {**await ask_userinfo(self._documents, provider, tokens, token.subject), **token.claims}

    async def _write(self, command: Callable[..., Entry], *args: Any) -> None:
        self._copy_entry(await self._catalog.write(command, *args))

    def _now_ms(self) -> int:
        return int(self._now_s() * 1000)


@implementer(IProvider)
class OidcSource:
    """One provider, for the daily check."""

    def __init__(self, sign_on: SignOn, provider: Provider) -> None:
        self.name = provider.name
        self.issuer = provider.issuer.url
        self._sign_on = sign_on
        self._provider = provider

    async def ask(self, linked: LinkedIdentity) -> Known | None:
        """What the provider says of a person now, None if it cannot say."""
        return await self._sign_on.ask(self._provider, linked)


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _link_once(
    tx: Transaction, /, digest: bytes, until_ms: int, person: Person, *, now_ms: int, **how: Any
) -> tuple[User, LinkedIdentity]:
    """As ``ensure_linked``, once for a login, which ``digest`` stands for. :raises IdentityRefused: it has ended"""
    if not spend_token(tx, digest, until_ms + 1000, now_ms=now_ms):
        raise IdentityRefused("this login has ended already: begin it again")
    return ensure_linked(tx, person, now_ms=now_ms, **how)


def _end_sessions(
    tx: Transaction, provider: Provider, token: IdentityToken, subject: str, sid: str, actor: Actor, now_ms: int
) -> Entry:
    if not spend_token(tx, token.digest, (token.expires_at + SKEW_S) * 1000, now_ms=now_ms):
        raise IdentityRefused("the logout token was used before")
    tokens = provider.logout_ends_tokens
    users = end_sessions_of(tx, token.issuer, subject=subject, sid=sid, tokens=tokens, now_ms=now_ms)
    detail = {"provider": provider.name, "by": "logout token", "tokens": tokens}
    entry = Entry(actor, "session.end", ", ".join(users), detail=detail)
    append_entry(tx, entry, now_ms)
    return entry
