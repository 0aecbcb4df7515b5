"""Tokens as the API shows them."""

from __future__ import annotations

import msgspec

from pkgrepo.auth.tokens.limits import NOWHERE
from pkgrepo.management.api.names import action_names
from pkgrepo.model import Token

from .schema import AskedRecord, NewTokenRecord, ScopeRecord, TokenRecord


def token_record(token: Token, owner: str) -> TokenRecord:
    """The record of a token, without its text."""
    limits = token.limits
    reached = [each for each in limits.repositories if each != NOWHERE]
    return TokenRecord(
        id=token.uid,
        name=token.name,
        description=token.description,
        kind=token.kind,
        owner=owner,
        shown=token.shown,
        scopes=sorted(limits.scopes),
        repository_access="listed" if reached else "none" if limits.repositories else "owner",
        repositories=[
            ScopeRecord(repository=each.repository, actions=(action_names(each.actions)), packages=list(each.packages))
            for each in reached
        ],
        asked=None if token.asked is None else msgspec.convert(token.asked, AskedRecord),
        packages=list(limits.packages),
        cidrs=list(limits.cidrs),
        expires_at=limits.expires_at,
        revoked_at=token.revoked_at,
        created_at=token.created_at,
        created_from=token.created_from,
        last_used_at=token.last_used_at,
        last_used_ip=token.last_used_ip,
        last_used_client=token.last_used_client,
        uses=token.uses,
    )


def new_token_record(token: Token, owner: str, text: str) -> NewTokenRecord:
    """The record of a token that was made just now, with its text."""
    return NewTokenRecord(token=text, **msgspec.structs.asdict(token_record(token, owner)))
