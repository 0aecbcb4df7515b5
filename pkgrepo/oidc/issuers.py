"""
Issuers: their documents and keys, kept in memory, and asked for again when they are old.

==============================  ====================================================================================
what is kept                    what a caller gets
==============================  ====================================================================================
nothing, or of another day      the result of a request, which all callers share; its failure, too, for ``COOL_S``
older than ``FRESH_S``          the result of a request; if that fails, what is kept
fresh, and has the key          that key
fresh, without the key          the result of a request, unless one was made within ``ROTATION_S``: keys are rotated,
                                but any text may name a key that does not exist (not one that the issuer just sent)
==============================  ====================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from attrs import frozen

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import IdentityRefused, Invalid, IssuerUnavailable
from pkgrepo.untrusted.strict_json import decode_json

from .documents import Documents, check_address
from .identity_tokens import (
    NEEDED,
    IdentityToken,
    Unverified,
    VerificationKey,
    matching,
    parse,
    read_keys,
    verify,
)

FRESH_S: Final = 3600.0
KEPT_S: Final = 86_400.0  # seconds for which keys are used while the issuer cannot be asked
ROTATION_S: Final = 30.0  # seconds between two requests for a key that is not there
COOL_S: Final = 5.0  # seconds after a failure in which the issuer is not asked again
PUBLIC: Final = frozenset({"token.actions.githubusercontent.com", "gitlab.com", "oidc.circleci.com"})
KINDS: Final = ("github", "gitlab", "circleci")
DISCOVERY: Final = "/.well-known/openid-configuration"


def guess_kind(name: str, url: str) -> str:
    """The kind of an issuer by its address: one of ``KINDS``, or empty. Forgejo and Gitea have the claims of GitHub."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host == "token.actions.githubusercontent.com" or parts.path.endswith(("/_services/token", "/api/actions")):
        return "github"
    if host == "oidc.circleci.com":
        return "circleci"
    if host.startswith("gitlab."):
        return "gitlab"
    return name if name in KINDS else ""


@frozen
class Kept:
    """The documents of an issuer, and when they were fetched (seconds of the reactor's clock)."""

    metadata: Mapping[str, Any]
    keys: Sequence[VerificationKey]
    fetched_at: float


class Issuer:
    """
    One issuer: ``name`` is what the settings call it, ``url`` its identifier, which is the claim ``iss`` of its tokens.

    ``audiences``: its tokens must name one of them. ``kind``: whose claims its tokens have, one of ``KINDS``; empty if
    that is not known.
    """

    def __init__(
        self, name: str, url: str, audiences: Sequence[str], documents: Documents, reactor: Any, kind: str = ""
    ) -> None:
        self.name = name
        self.url = url
        self.kind = kind or guess_kind(name, url)
        self.audiences = tuple(audiences)
        self._documents = documents
        self._reactor = reactor
        self._kept: Kept | None = None
        self._failure: tuple[float, str] | None = None  # until when it is not asked again, and why
        self._flight: SingleFlight[None, Kept] = SingleFlight()

    @property
    def is_public(self) -> bool:
        """Whether anybody can have pipelines there."""
        return (urlsplit(self.url).hostname or "") in PUBLIC

    async def metadata(self) -> Mapping[str, Any]:
        """Its configuration (OpenID Connect Discovery 1.0 section 3). :raises IssuerUnavailable: it cannot be had"""
        return (await self._documents_now()).metadata

    async def verify(
        self,
        token: Unverified,
        audiences: Sequence[str],
        now_s: float,
        needed: Sequence[str] = NEEDED,
        *,
        own: bool = False,
    ) -> IdentityToken:
        """
        Verify a token of this issuer; see L{identity_tokens.verify}.

        ``own``: the issuer itself has just sent it, so that it names a key which the issuer has.

        :raises IdentityRefused: it is not valid; :raises IssuerUnavailable: there are no keys to verify it with
        """
        kept = await self._documents_now()
        # a request that was made for another token may have begun before the keys were rotated
        for _ in range(2 if own else 1):
            asked = self._reactor.seconds() - kept.fetched_at < ROTATION_S
            if matching(kept.keys, token) or (asked and not own):
                break
            kept = await self._fetch_or(kept)
        return verify(token, kept.keys, audiences, now_s, needed)

    async def _documents_now(self) -> Kept:
        kept = self._kept
        if kept is None:
            return await self._fetch()
        age_s = self._reactor.seconds() - kept.fetched_at
        if age_s < FRESH_S:
            return kept
        return await (self._fetch_or(kept) if age_s < KEPT_S else self._fetch())

    async def _fetch_or(self, kept: Kept) -> Kept:
        try:
            return await self._fetch()
        except IssuerUnavailable:
            return kept

    async def _fetch(self) -> Kept:
        if self._failure is not None and self._reactor.seconds() < self._failure[0]:
            raise IssuerUnavailable(self.name, self._failure[1])
        return await self._flight.run(None, self._fetch_both)

    async def _fetch_both(self) -> Kept:
        try:
            metadata = await self._read(self.url.rstrip("/") + DISCOVERY)
            if metadata.get("issuer") != self.url:
                raise IssuerUnavailable(self.name, "its configuration names another issuer than the settings do")
            document = await self._documents.get(self.name, check_address(self.name, metadata.get("jwks_uri")))
            if document.status != 200:
                raise IssuerUnavailable(self.name, f"it answers {document.status} for its keys")
            try:
                keys = read_keys(document.body)
            except Invalid as error:
                raise IssuerUnavailable(self.name, error.message) from None
        except IssuerUnavailable as error:
            self._failure = self._reactor.seconds() + COOL_S, error.reason
            raise
        self._failure = None
        self._kept = Kept(metadata, keys, self._reactor.seconds())
        return self._kept

    async def _read(self, url: str) -> Mapping[str, Any]:
        document = await self._documents.get(self.name, url)
        if document.status != 200:
            raise IssuerUnavailable(self.name, f"it answers {document.status} for its configuration")
        try:
            value = decode_json(document.body)
        except Invalid:
            value = None
        if not isinstance(value, dict):
            raise IssuerUnavailable(self.name, "its configuration is no JSON object")
        return value


class Issuers:
    """The issuers of pipelines that the settings name. ``now_s`` returns seconds since the epoch."""

    def __init__(self, issuers: Sequence[Issuer], now_s: Callable[[], float]) -> None:
        self._by_name = {each.name: each for each in issuers}
        self._by_url = {each.url: each for each in issuers}
        self._now_s = now_s

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def __iter__(self) -> Iterator[Issuer]:
        return iter(self._by_name.values())

    def find(self, name: str) -> Issuer | None:
        """The issuer that the settings call so, or None."""
        return self._by_name.get(name)

    def of_kind(self, kind: str) -> list[Issuer]:
        """The issuers of a kind."""
        return [each for each in self._by_name.values() if each.kind == kind]

    @property
    def names(self) -> list[str]:
        """The names of all issuers."""
        return list(self._by_name)

    @property
    def audience(self) -> str:
        """The audience that pipelines should ask for: that of the first issuer; empty without any."""
        return next((each.audiences[0] for each in self._by_name.values()), "")

    async def verify(self, text: str, audiences: Iterable[str] = ()) -> tuple[Issuer, IdentityToken]:
        """
        The issuer of a token, and what the token claims; ``audiences`` are possible beside those of the issuer.

        :raises IdentityRefused: it is not valid; :raises IssuerUnavailable: it cannot be verified now
        """
        token = parse(text)
        issuer = self._by_url.get(token.issuer)
        if issuer is None:
            raise IdentityRefused(f"this server accepts no tokens of the issuer {token.issuer[:200]!r}")
        return issuer, await issuer.verify(token, [*issuer.audiences, *audiences], self._now_s())
