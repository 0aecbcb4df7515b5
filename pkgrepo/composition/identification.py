"""Builds authentication, authorisation and the audit log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from pkgrepo.auth.accounts import Accounts
from pkgrepo.auth.external_accounts import DailyCheck
from pkgrepo.auth.login.authenticator import Authenticator
from pkgrepo.auth.login.checkers import (
    PasswordChecker,
    ProxiedChecker,
    SessionChecker,
    SignedChecker,
    TokenChecker,
    make_portal,
)
from pkgrepo.auth.login.directories import Directories
from pkgrepo.auth.login.second_factors import SecondFactors
from pkgrepo.auth.login.sessions import BrowserSessions
from pkgrepo.auth.login.throttle import NewUnlocks
from pkgrepo.auth.permissions.authorizer import Authorizer
from pkgrepo.auth.tokens.bearer import BearerTokens, SigningKeys
from pkgrepo.auth.tokens.canaries import CanaryRings
from pkgrepo.auth.tokens.uses import TokenUses
from pkgrepo.composition.processes.shared_news import AUDIT, answer_after, make_throttle
from pkgrepo.config import Config
from pkgrepo.gateway.callers.access import Access
from pkgrepo.management.api.audit_log import AuditFile, AuditLog
from pkgrepo.management.api.services import Identification
from pkgrepo.oidc.issuers import Issuers
from pkgrepo.oidc.pipelines import PipelineTokens
from pkgrepo.oidc.sign_on import SignOn
from pkgrepo.repositories.clock import seconds_of
from pkgrepo.storage.catalog.people.logins import newest_unlock_id
from pkgrepo.storage.catalog.people.users import identity_snapshot
from pkgrepo.storage.catalog.server import settings

from .core import Core
from .issuers import make_documents, make_issuers, make_providers


async def make_identification(core: Core, config: Config, reactor: Any) -> Identification:
    """Put it together over a core that was started; creates the secret of bearer tokens at the first start."""
    catalog, clock = core.catalog, seconds_of(core.clock)
    keys = SigningKeys.single(await catalog.write(settings.ensure_secret, "bearer_secret"))
    bearer = BearerTokens(catalog, keys, clock=clock)
    unlocks = NewUnlocks(catalog, await catalog.look(newest_unlock_id))
    throttle = make_throttle(core.peers, limit=config.limits.login_failures, unlocks=unlocks)
    factors = SecondFactors(catalog, core.secrets, throttle, required=config.auth.second_factor, clock=clock)
    idle = timedelta(hours=config.auth.login_hours)
    sessions = BrowserSessions(catalog, idle=idle, clock=clock, refused=factors.lacks)
    directories: Sequence[Any] = ()
    if config.auth.ldap:
        from .directories import make_directories  # noqa: PLC0415 - loads a library that few servers need

        directories = make_directories(config, reactor)
    directory_logins = Directories(
        directories,
        catalog,
        parallel=max((each.connections for each in config.auth.ldap.values()), default=1),
        reactor=reactor,
        now_ms=core.clock.now_ms,
    )
    checkers = [
        PasswordChecker(
            catalog,
            core.passwords,
            throttle,
            factors,
            directories=directory_logins,
            clock=clock,
        ),
        TokenChecker(catalog, clock=clock),
        SignedChecker(catalog, bearer, clock=clock),
        SessionChecker(sessions),
        ProxiedChecker(catalog, clock=clock),
    ]
    uses = TokenUses(catalog, clock=clock)
    serial = identity_snapshot(catalog)
    audit_log = AuditLog(
        catalog, core.clock, reactor, _audit_file(config), flush_others=partial(core.peers.gather, AUDIT)
    )
    answer_after(core.peers, AUDIT, audit_log.flush_own)
    canaries = CanaryRings(catalog, copy_entry=audit_log.copy, clock=clock)
    authenticator = Authenticator(
        catalog, make_portal(catalog, checkers), uses, on_canary=canaries.note, clock=clock, serial=serial
    )
    authorizer = Authorizer(catalog, anonymous=config.auth.anonymous, clock=clock, serial=serial)
    accounts = Accounts(
        catalog=catalog,
        authenticator=authenticator,
        passwords=core.passwords,
        now_ms=core.clock.now_ms,
        token_max_days=config.auth.token_max_days,
        copy_entry=audit_log.copy,
        own_email=not config.auth.links_by_email,
    )
    documents = make_documents(config, reactor)
    sign_on = SignOn(
        make_providers(config, documents, reactor),
        documents,
        catalog=catalog,
        box=core.secrets,
        now_s=clock,
        copy_entry=audit_log.copy,
    )
    return Identification(
        bearer=bearer,
        uses=uses,
        canaries=canaries,
        authenticator=authenticator,
        second_factors=factors,
        throttle=throttle,
        authorizer=authorizer,
        sessions=sessions,
        access=Access(
            authenticator,
            authorizer,
            config.server.public_url,
            proxy_header=config.auth.proxy_header.lower().encode("ascii"),
        ),
        accounts=accounts,
        audit_log=audit_log,
        passwords=core.passwords,
        documents=documents,
        pipelines=PipelineTokens(
            Issuers(make_issuers(config, documents, reactor), clock),
            catalog=catalog,
            registry=core.registry,
            clock=core.clock,
            copy_entry=audit_log.copy,
        ),
        sign_on=sign_on,
        directories=directories,
        directory_logins=directory_logins,
        daily_check=DailyCheck(
            [*sign_on.sources(), *directories], catalog, now_ms=core.clock.now_ms, copy_entry=audit_log.copy
        ),
    )


def _audit_file(config: Config) -> Callable[[bytes], None] | None:
    if config.log.audit_file is None:
        return None
    file = AuditFile(config.log.audit_file)
    file.restrict_permissions()
    return file.append
