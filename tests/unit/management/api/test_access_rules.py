"""Access rules: which callers each route admits. Every route is in the table."""

from __future__ import annotations

import re
from typing import Any

import pytest
import pytest_twisted

from pkgrepo.management.api.access_rules import (
    ACCOUNT_HOLDERS,
    ADMINS,
    AUDITORS,
    CONTENT_DELETERS,
    CONTENT_PUBLISHERS,
    CONTENT_READERS,
    CONTENT_READERS_OF_SOME,
    EDITORS,
    METRICS_READERS,
    PROJECT_FINDERS,
    PROJECT_VIEWERS,
    PUBLIC,
    READERS,
    READERS_OF_SOME,
    RECALLERS,
    SYSTEM_MANAGERS,
    USER_MANAGERS,
    VIEWERS,
    AccessRule,
)
from pkgrepo.management.api.route import Route
from pkgrepo.management.app import EVERY_TABLE
from pkgrepo.management.jobs.routes import JOB_READERS, JOB_VIEWERS
from pkgrepo.management.lifecycle.retention import REMOVERS
from pkgrepo.management.packages.tags import OVERWRITERS
from pkgrepo.management.transfers.imports import IMPORTERS
from tests.support.memory_server import Stack

ROUTES = [route for table in EVERY_TABLE for route in table.routes]
NOBODY = "00000000-0000-4000-8000-000000000000"

# Status of the refusal by caller; None where the caller is admitted. The repository is private.
PEOPLE = ("nobody", "plain", "reader", "editor", "users", "keeper", "admin")
# All of an admin: "weak token" may only read that repository; the "drawn" bearer tokens were issued for it.
TOKENS = ("weak token", "metrics token", "scoped bearer", "bearer", "drawn scoped bearer", "drawn bearer")
CALLERS = (*PEOPLE, *TOKENS)
EXPECTED: dict[AccessRule, tuple[int | None, ...]] = {
    PUBLIC: (None,) * 13,
    VIEWERS: (None,) * 9 + (403, None, 403, None),
    PROJECT_VIEWERS: (None,) * 7 + (403, 403, 403, None, 403, 403),
    PROJECT_FINDERS: (401, 404, None, None, 404, None, None, 403, 403, 403, None, 403, 403),
    ACCOUNT_HOLDERS: (401, None, None, None, None, None, None, 403, 403, 403, None, 403, 403),
    IMPORTERS: (401, None, None, None, None, None, None, 403, 403, 403, None, 403, 403),
    USER_MANAGERS: (401, 403, 403, 403, None, 403, None, 403, 403, 403, None, 403, 403),
    SYSTEM_MANAGERS: (401, 403, 403, 403, 403, None, None, 403, 403, 403, None, 403, 403),
    RECALLERS: (401, 403, 403, 403, 403, None, None, 403, 403, 403, None, 403, 403),
    METRICS_READERS: (401, 403, 403, 403, 403, None, None, 403, None, 403, None, 403, 403),
    AUDITORS: (401, 403, 403, 403, 403, 403, None, 403, 403, 403, None, 403, 403),
    READERS: (401, 404, None, None, 404, None, None, None, 404, 403, None, 403, None),
    CONTENT_READERS: (401, 404, None, None, 404, None, None, None, 404, 403, None, 403, None),
    READERS_OF_SOME: (401, 404, None, None, 404, None, None, None, 404, 403, None, 403, None),
    CONTENT_READERS_OF_SOME: (401, 404, None, None, 404, None, None, None, 404, 403, None, 403, None),
    EDITORS: (401, 404, 403, None, 404, None, None, 403, 404, 403, None, 403, 403),
    ADMINS: (401, 404, 403, 403, 404, 403, None, 403, 404, 403, None, 403, 403),
    JOB_READERS: (401, None, None, None, None, None, None, None, None, None, None, None, None),
    CONTENT_PUBLISHERS: (401, 404, 403, 403, 404, None, None, 403, 404, 403, None, 403, 403),
    CONTENT_DELETERS: (401, 404, 403, 403, 404, None, None, 403, 404, 403, None, 403, 403),
}

ROUTE_ACCESS = {
    "DELETE /package/<repository>/<package>": CONTENT_DELETERS,
    "DELETE /package/<repository>/<package>/versions/<version>": CONTENT_DELETERS,
    "DELETE /project/<key>": ACCOUNT_HOLDERS,
    "DELETE /project/<key>/bindings": SYSTEM_MANAGERS,
    "DELETE /project/<key>/members": ACCOUNT_HOLDERS,
    "DELETE /repository/<repository>": SYSTEM_MANAGERS,
    "DELETE /repository/<repository>/packages": CONTENT_DELETERS,
    "POST /repository/<repository>/mirror": EDITORS,
    "GET /repository/<repository>/paths": CONTENT_READERS_OF_SOME,
    "POST /repository/<repository>/paths": EDITORS,
    "POST /repository/<repository>/lock-formats": EDITORS,
    "DELETE /repository/<repository>/uploads/<id>": EDITORS,
    "GET /repository/<repository>/publishers": EDITORS,
    "POST /repository/<repository>/publishers": EDITORS,
    "DELETE /repository/<repository>/publishers/<id>": EDITORS,
    "GET /package/<repository>/<package>/publishers": EDITORS,
    "GET /project/<key>/publishers": PROJECT_VIEWERS,
    "POST /project/<key>/publishers": SYSTEM_MANAGERS,
    "DELETE /project/<key>/publishers/<id>": SYSTEM_MANAGERS,
    "POST /package/<repository>/<package>/publishers": EDITORS,
    "DELETE /package/<repository>/<package>/publishers/<id>": EDITORS,
    "DELETE /storage/<id>": SYSTEM_MANAGERS,
    "DELETE /trash/<id>": VIEWERS,
    "DELETE /user/sessions": ACCOUNT_HOLDERS,
    "DELETE /user/sessions/<id>": ACCOUNT_HOLDERS,
    "DELETE /user/token/<id>": ACCOUNT_HOLDERS,
    "DELETE /users/<id>": USER_MANAGERS,
    "DELETE /users/<id>/sessions": USER_MANAGERS,
    "DELETE /users/<id>/second-factor": USER_MANAGERS,
    "GET /token": AUDITORS,
    "DELETE /token/<id>": USER_MANAGERS,
    "POST /user/second-factor": PUBLIC,
    "POST /user/second-factor/confirm": PUBLIC,
    "POST /user/second-factor/recovery-codes": PUBLIC,
    "POST /user/second-factor/remove": PUBLIC,
    "DELETE /users/<id>/sessions/<session>": USER_MANAGERS,
    "DELETE /users/<id>/permissions/<place>": USER_MANAGERS,
    "GET /activity": VIEWERS,
    "GET /advisories": VIEWERS,
    "GET /advisories/data": VIEWERS,
    "POST /advisories/refresh": SYSTEM_MANAGERS,
    "POST /osv/v1/query": VIEWERS,
    "POST /osv/v1/querybatch": VIEWERS,
    "GET /audit": AUDITORS,
    "GET /auth/issuers": ACCOUNT_HOLDERS,
    "GET /recall": RECALLERS,
    "POST /policy/rehearse": SYSTEM_MANAGERS,
    "POST /policy/drill": SYSTEM_MANAGERS,
    "GET /policy/suggested": ACCOUNT_HOLDERS,
    "GET /auth/token": PUBLIC,
    "GET /docs": PUBLIC,
    "GET /explain": VIEWERS,
    "GET /info": PUBLIC,
    "GET /info/scopes": PUBLIC,
    "GET /job": JOB_VIEWERS,
    "GET /job/<id>": JOB_READERS,
    "GET /openapi.json": PUBLIC,
    "GET /package/<repository>/<package>": CONTENT_READERS,
    "GET /package/<repository>/<package>/difference": CONTENT_READERS,
    "GET /package/<repository>/<package>/difference/text": CONTENT_READERS,
    "GET /package/<repository>/<package>/downloads": CONTENT_READERS,
    "GET /package/<repository>/<package>/tags/<tag>/history": CONTENT_READERS,
    "PUT /package/<repository>/<package>/tags/<tag>": CONTENT_READERS,
    "DELETE /package/<repository>/<package>/tags/<tag>": CONTENT_READERS,
    "GET /package/<repository>/<package>/versions": CONTENT_READERS,
    "GET /package/<repository>/<package>/versions/<version>": CONTENT_READERS,
    "GET /package/<repository>/<package>/versions/<version>/advisories": CONTENT_READERS,
    "GET /package/<repository>/<package>/versions/<version>/files": CONTENT_READERS,
    "GET /package/<repository>/<package>/versions/<version>/image": CONTENT_READERS,
    "GET /package/<repository>/<package>/versions/<version>/readme": CONTENT_READERS,
    "GET /package/<repository>/<package>/versions/<version>/statements": CONTENT_READERS,
    "GET /package/<repository>/<package>/versions/<version>/attestations": CONTENT_READERS,
    "GET /permissions": USER_MANAGERS,
    "GET /users/<id>/sessions": USER_MANAGERS,
    "GET /project": PROJECT_VIEWERS,
    "GET /project/<key>": PROJECT_VIEWERS,
    "GET /project/<key>/bindings": PROJECT_VIEWERS,
    "GET /project/<key>/members": PROJECT_VIEWERS,
    "GET /project/by-key/<repository>/<package>": PROJECT_FINDERS,
    "GET /repository": VIEWERS,
    "GET /repository/<repository>": READERS_OF_SOME,
    "GET /repository/<repository>/config": EDITORS,
    "GET /repository/<repository>/config/<key>": EDITORS,
    "GET /repository/<repository>/configs": EDITORS,
    "GET /repository/<repository>/contents/<path:path>": CONTENT_READERS_OF_SOME,
    "GET /repository/<repository>/gc": ADMINS,
    "GET /repository/<repository>/members": EDITORS,
    "GET /repository/<repository>/names": READERS_OF_SOME,
    "GET /repository/<repository>/downloads": CONTENT_READERS,
    "GET /package/<repository>/<package>/dependents": CONTENT_READERS,
    "GET /repository/<repository>/packages": CONTENT_READERS_OF_SOME,
    "GET /repository/<repository>/deleted-names": CONTENT_READERS,
    "GET /repository/<repository>/snapshot": CONTENT_READERS,
    "GET /repository/<repository>/page": READERS_OF_SOME,
    "GET /repository/<repository>/releases": CONTENT_READERS_OF_SOME,
    "GET /repository/<repository>/retired-names": EDITORS,
    "GET /repository/<repository>/setup": READERS_OF_SOME,
    "GET /repository/<repository>/stats": ADMINS,
    "GET /repository/<repository>/text/<path:path>": CONTENT_READERS_OF_SOME,
    "GET /repository/<repository>/tree/<path:path>": CONTENT_READERS,
    "GET /repository/<repository>/upload": CONTENT_READERS_OF_SOME,
    "POST /repository/<repository>/upload": CONTENT_READERS_OF_SOME,
    "GET /repository/<repository>/uploads": EDITORS,
    "GET /repository/<repository>/replication": EDITORS,
    "GET /repository/<repository>/upstream": EDITORS,
    "GET /repository/config/<key>/default": PUBLIC,
    "GET /repository/config/<key>/description": PUBLIC,
    "GET /repository/config/<key>/schema": PUBLIC,
    "GET /repository/find-id/<storage>/<name>": VIEWERS,
    "GET /repository/types": PUBLIC,
    "GET /search/packages": VIEWERS,
    "GET /server/state": SYSTEM_MANAGERS,
    "GET /statistics": METRICS_READERS,
    "GET /storage": SYSTEM_MANAGERS,
    "GET /storage/<id>": SYSTEM_MANAGERS,
    "GET /stages": VIEWERS,
    "GET /stages/<id>": VIEWERS,
    "GET /trash": VIEWERS,
    "GET /user-management/is-taken": USER_MANAGERS,
    "GET /user/me": ACCOUNT_HOLDERS,
    "GET /user/me/permissions": ACCOUNT_HOLDERS,
    "GET /user/sessions": ACCOUNT_HOLDERS,
    "GET /user/token": ACCOUNT_HOLDERS,
    "GET /user/token/<id>": ACCOUNT_HOLDERS,
    "GET /user/whoami": PUBLIC,
    "GET /system/quotas": SYSTEM_MANAGERS,
    "PUT /package/<repository>/<package>/versions/<version>/pin": CONTENT_DELETERS,
    "DELETE /package/<repository>/<package>/versions/<version>/pin": CONTENT_DELETERS,
    "GET /package/<repository>/<package>/pins": CONTENT_READERS,
    "GET /repository/<repository>/pins": READERS_OF_SOME,
    "GET /project/<key>/pins": PROJECT_VIEWERS,
    "GET /users/<id>/quota": USER_MANAGERS,
    "PATCH /users/<id>/quota": SYSTEM_MANAGERS,
    "GET /user/me/quota": ACCOUNT_HOLDERS,
    "GET /user/me/login-methods": ACCOUNT_HOLDERS,
    "GET /users/<id>/login-methods": USER_MANAGERS,
    "GET /user/login/oidc": PUBLIC,
    "POST /user/login/oidc/<provider>": PUBLIC,
    "POST /user/login/oidc/<provider>/callback": PUBLIC,
    "POST /user/login/oidc/<provider>/logout": PUBLIC,
    "POST /auth/oidc": PUBLIC,
    "GET /project/<key>/quota": PROJECT_VIEWERS,
    "PATCH /project/<key>/quota": SYSTEM_MANAGERS,
    "POST /repository/<repository>/twin": ADMINS,
    "GET /system/twin-key": PUBLIC,
    "GET /system/backup": SYSTEM_MANAGERS,
    "POST /system/backup": SYSTEM_MANAGERS,
    "GET /system/twins": SYSTEM_MANAGERS,
    "POST /system/twins/<name>": SYSTEM_MANAGERS,
    "GET /policy/rules": SYSTEM_MANAGERS,
    "PUT /policy/rules": SYSTEM_MANAGERS,
    "GET /policy/counts": ACCOUNT_HOLDERS,
    "GET /policy/blocks": ACCOUNT_HOLDERS,
    "POST /policy/blocks": ACCOUNT_HOLDERS,
    "DELETE /policy/blocks/<block>": ACCOUNT_HOLDERS,
    "POST /advisories/records": SYSTEM_MANAGERS,
    "GET /recalls": RECALLERS,
    "GET /recall/report": RECALLERS,
    "GET /user/canary": ACCOUNT_HOLDERS,
    "GET /policy/freeze": ACCOUNT_HOLDERS,
    "POST /policy/freeze": ACCOUNT_HOLDERS,
    "POST /policy/freeze/<freeze>/except": ACCOUNT_HOLDERS,
    "DELETE /policy/freeze/<freeze>": ACCOUNT_HOLDERS,
    "GET /policy/quarantine": ACCOUNT_HOLDERS,
    "GET /policy/quarantine/<quarantined>": ACCOUNT_HOLDERS,
    "POST /policy/quarantine/<quarantined>/approve": ACCOUNT_HOLDERS,
    "POST /policy/quarantine/<quarantined>/deny": ACCOUNT_HOLDERS,
    "GET /system/retention": SYSTEM_MANAGERS,
    "PUT /system/retention": SYSTEM_MANAGERS,
    "GET /system/quota": SYSTEM_MANAGERS,
    "PATCH /system/quota": SYSTEM_MANAGERS,
    "GET /system/hosts": SYSTEM_MANAGERS,
    "PUT /system/hosts": SYSTEM_MANAGERS,
    "PATCH /system/hosts": SYSTEM_MANAGERS,
    "GET /storage/<id>/quota": SYSTEM_MANAGERS,
    "PATCH /storage/<id>/quota": SYSTEM_MANAGERS,
    "GET /repository/<repository>/quota": READERS,
    "PATCH /repository/<repository>/quota": READERS,
    "GET /groups": USER_MANAGERS,
    "POST /groups": USER_MANAGERS,
    "GET /groups/<name>": USER_MANAGERS,
    "PATCH /groups/<name>": USER_MANAGERS,
    "DELETE /groups/<name>": USER_MANAGERS,
    "GET /groups/<name>/members": USER_MANAGERS,
    "POST /groups/<name>/members": USER_MANAGERS,
    "DELETE /groups/<name>/members": USER_MANAGERS,
    "PUT /groups/<name>/permissions": USER_MANAGERS,
    "PUT /groups/<name>/permissions/<place>": USER_MANAGERS,
    "DELETE /groups/<name>/permissions/<place>": USER_MANAGERS,
    "GET /user/services": ACCOUNT_HOLDERS,
    "GET /users/<id>/token": ACCOUNT_HOLDERS,
    "POST /users/<id>/token": ACCOUNT_HOLDERS,
    "DELETE /users/<id>/token/<token>": ACCOUNT_HOLDERS,
    "GET /users": USER_MANAGERS,
    "GET /users/<id>": USER_MANAGERS,
    "GET /users/<id>/permissions": USER_MANAGERS,
    "PATCH /project/<key>": ACCOUNT_HOLDERS,
    "PATCH /repository/<repository>": EDITORS,
    "PATCH /repository/<repository>/config/<key>": EDITORS,
    "PATCH /storage/<id>": SYSTEM_MANAGERS,
    "PATCH /user/me": ACCOUNT_HOLDERS,
    "PATCH /user/token/<id>": ACCOUNT_HOLDERS,
    "PATCH /users/<id>": USER_MANAGERS,
    "POST /auth/token": PUBLIC,
    "POST /install": PUBLIC,
    "POST /job/<id>/cancel": JOB_READERS,
    "GET /import": PUBLIC,
    "POST /import": IMPORTERS,
    "POST /package/<repository>/<package>/tags/<tag>": OVERWRITERS,
    "POST /package/<repository>/<package>/versions/<version>/unyank": CONTENT_PUBLISHERS,
    "POST /package/<repository>/<package>/versions/<version>/yank": CONTENT_DELETERS,
    "POST /project": SYSTEM_MANAGERS,
    "POST /project/<key>/bindings": SYSTEM_MANAGERS,
    "POST /project/<key>/members": ACCOUNT_HOLDERS,
    "POST /repository": SYSTEM_MANAGERS,
    "GET /system/starter": SYSTEM_MANAGERS,
    "POST /system/starter": SYSTEM_MANAGERS,
    "POST /upstream/check": SYSTEM_MANAGERS,
    "POST /repository/<repository>/cache/purge": EDITORS,
    "POST /repository/<repository>/gc": ADMINS,
    "POST /repository/<repository>/rebuild": ADMINS,
    "POST /repository/<repository>/retired-names/release": EDITORS,
    "POST /repository/<repository>/replication/compare": EDITORS,
    "POST /repository/<repository>/replication/promote": SYSTEM_MANAGERS,
    "POST /repository/<repository>/upstream/check": EDITORS,
    "POST /repository/<repository>/retention": REMOVERS,
    "POST /repository/<repository>/verify": ADMINS,
    "POST /repository/config/<key>/validate": ACCOUNT_HOLDERS,
    "POST /storage": SYSTEM_MANAGERS,
    "POST /storage/<id>/check": SYSTEM_MANAGERS,
    "POST /stages/<id>/approve": VIEWERS,
    "POST /stages/<id>/reject": VIEWERS,
    "DELETE /stages/<id>": VIEWERS,
    "GET /repository/<repository>/stages": READERS_OF_SOME,
    "POST /repository/<repository>/stages": READERS_OF_SOME,
    "POST /trash/<id>/restore": VIEWERS,
    "POST /user/change-password": ACCOUNT_HOLDERS,
    "POST /user/login": PUBLIC,
    "POST /user/passkeys/begin": PUBLIC,
    "POST /user/passkeys": PUBLIC,
    "GET /user/passkeys": ACCOUNT_HOLDERS,
    "DELETE /user/passkeys/<id>": ACCOUNT_HOLDERS,
    "DELETE /users/<id>/passkeys": USER_MANAGERS,
    "POST /user/login/passkey/begin": PUBLIC,
    "POST /user/login/passkey": PUBLIC,
    "GET /user/me/rights": ACCOUNT_HOLDERS,
    "GET /users/<id>/rights": USER_MANAGERS,
    "POST /users/<id>/password-link": USER_MANAGERS,
    "DELETE /users/<id>/password-link": USER_MANAGERS,
    "POST /user/password-link": PUBLIC,
    "GET /user/login/device": ACCOUNT_HOLDERS,
    "POST /user/login/device": PUBLIC,
    "POST /user/login/device/decision": ACCOUNT_HOLDERS,
    "POST /user/login/device/token": PUBLIC,
    "POST /user/logout": ACCOUNT_HOLDERS,
    "POST /user/token": ACCOUNT_HOLDERS,
    "POST /user/token/<id>/rotate": ACCOUNT_HOLDERS,
    "POST /users": USER_MANAGERS,
    "POST /users/<id>/unlock": USER_MANAGERS,
    "PUT /repository/<repository>/config": EDITORS,
    "PUT /repository/<repository>/config/<key>": EDITORS,
    "PUT /repository/<repository>/members": EDITORS,
    "PUT /users/<id>/password": USER_MANAGERS,
    "PUT /users/<id>/permissions": USER_MANAGERS,
    "PUT /users/<id>/permissions/<place>": USER_MANAGERS,
    "PUT /users/<id>/status": USER_MANAGERS,
    "GET /events": VIEWERS,
    "POST /package/<repository>/<package>/versions/<version>/promote": CONTENT_READERS,
    **{
        f"{method} {place}/webhooks{rest}": access
        for place, access in (
            ("/system", SYSTEM_MANAGERS),
            ("/repository/<repository>", EDITORS),
            ("/project/<key>", ACCOUNT_HOLDERS),
        )
        for method, rest in (
            ("GET", ""),
            ("POST", ""),
            ("GET", "/<id>"),
            ("PATCH", "/<id>"),
            ("DELETE", "/<id>"),
            ("POST", "/<id>/rotate-secret"),
            ("POST", "/<id>/test"),
            ("GET", "/<id>/deliveries"),
            ("GET", "/<id>/deliveries/<delivery>"),
            ("POST", "/<id>/deliveries/<delivery>/redeliver"),
        )
    },
}


def test_every_route_has_an_access_rule() -> None:
    assert {f"{route.method} {route.path}": route.access for route in ROUTES} == ROUTE_ACCESS


def address(route: Route, path: str) -> str:
    """The path with the private repository as its repository, and ids that do not exist for other parameters."""

    def fill(match: re.Match[str]) -> str:
        return {"repository": "main%2Fprivate", "package": "demo", "version": "1.0"}.get(match[1], NOBODY)

    return re.sub(r"<(?:path:)?([a-z]+)>", fill, path)


@pytest_twisted.async_yield_fixture
async def people(stack: Stack) -> Any:
    """One caller of each kind, and a private repository."""
    await stack.add_repository("private", visibility="private")
    await stack.publish("main/private", "demo", "1.0")
    for name, fields in (
        ("plain", {}),
        ("reader", {}),
        ("editor", {}),
        ("users", {"user_manager": True}),
        ("keeper", {"system_manager": True}),
    ):
        await stack.add_user(name, **fields)
    await stack.grant("reader", "main/private", "read")
    await stack.grant("editor", "main/private", "read", "edit")
    weak = await stack.token(repositories=[{"repository": "main/private", "actions": ["read"]}])

    scope = "repository:main/private:pull"
    tokens = {
        "weak token": weak,
        "metrics token": await stack.token(scopes=["metrics"]),
        "scoped bearer": await stack.bearer("admin", scope),
        "bearer": await stack.bearer("admin"),
        "drawn scoped bearer": await stack.bearer(weak, scope),
        "drawn bearer": await stack.bearer(weak),
    }
    yield stack, {**{name: name for name in PEOPLE}, "nobody": None, **tokens}


@pytest.mark.parametrize(
    "rule", list(EXPECTED), ids=lambda rule: f"{rule.scope}{rule.action or ''}{rule.content or ''}"
)
async def test_callers_are_admitted_or_refused(people: Any, rule: AccessRule) -> None:
    stack, names = people
    for route in [route for route in ROUTES if route.access is rule]:
        for method, path in route.addresses:
            for caller, refused in zip(CALLERS, EXPECTED[rule], strict=True):
                reply = await stack.api(method, address(route, path), raw=b"!", who=names[caller])
                where = (method, path, caller, reply.status, reply.body)
                if refused is not None:
                    assert reply.status == refused, where
                    assert set(reply.json) == {"type", "title", "status", "detail", "instance"}, where
                elif caller != "nobody" and rule is not PUBLIC:
                    assert reply.status not in (401, 403), where
                    assert reply.status < 500, where
