"""
The commands of ``npm trust`` (npm 11.10 and later): publishers of a package, in the form of npm's claims.

==========  ======================================================================================================
type        claims, and the pattern that stands for a file
==========  ======================================================================================================
github      ``repository``, ``environment``, ``workflow_ref.file``: ``OWNER/NAME/.github/workflows/FILE@**``
gitlab      ``project_path``, ``environment``, ``ci_config_ref_uri.file``: ``HOST/PROJECT//FILE@**``
circleci    ``oidc.circleci.com/...``, of which ``context-ids`` is a list
==========  ======================================================================================================

npm names the type alone: it is that of one issuer in the settings. Publishers that people added in other ways are
listed with the claims that they have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec

from pkgrepo.auth.permissions.publishers import STAGE, entry_id, literal_claim
from pkgrepo.auth.tokens.limits import literal
from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import names
from pkgrepo.formats.npm.authorization import authorize_read, require_login
from pkgrepo.gateway.bodies import read_json
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.publishing import publishers as gateway
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Response, json_response
from pkgrepo.model import Identity, Repository
from pkgrepo.oidc.issuers import Issuer, Issuers
from pkgrepo.oidc.publishers import DEFINITIONS, SOURCES, Stored, described, source_claims, stored_in
from pkgrepo.proxy.virtual import publish_target
from pkgrepo.repositories.configuration import PipelinePublisher
from pkgrepo.storage.catalog.server.audit import Entry
from pkgrepo.untrusted.patterns import pattern

PUBLISH: Final = "createPackage"
STAGE_PUBLISH: Final = "createStagedPackage"
PERMISSIONS: Final[Mapping[str, str]] = {PUBLISH: "write", STAGE_PUBLISH: STAGE}
ESCAPED: Final = re.compile(r"\[([*?[])\]")
MOST: Final = 10  # configurations in one request; npm sends one
CIRCLE: Final = "oidc.circleci.com/"
ORGANISATION: Final = f"{CIRCLE}org-id"

_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=250)]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    file: Annotated[str, msgspec.Meta(pattern=pattern(r"^[^/@]{1,200}$", "the name of a file without its folder"))]


class _Configuration(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    claims: dict[str, _Text | list[_Text] | _File]
    permissions: list[str]


async def list_trust(context: Context[object], request: Request, name: str) -> Response:
    """``GET /-/package/<name>/trust``: the publishers of a package, which need not exist."""
    target, _ = await _place(context, request, name)
    issuers = context.services.pipelines.issuers
    return json_response(
        [_shown(issuers, each) for each in gateway.listed(target, names.package_key(name))], headers=NO_STORE
    )


async def add_trust(context: Context[object], request: Request, name: str) -> Response:
    """
    ``POST /-/package/<name>/trust``: add a publisher of a package, which need not exist.

    :raises Invalid: it is not valid, or no issuer is of its type; :raises Conflict: the package has it
    """
    target, identity = await _place(context, request, name)
    body, services, key = await read_json(request), context.services, names.package_key(name)
    issuers = services.pipelines.issuers
    given = [_publisher(issuers, each, key) for each in _read(body)]
    commands = [await gateway.prepare(services, identity, target, key, each) for each in given]
    entry = Entry(
        actor_of(request, identity),
        "publisher.add",
        target.path,
        detail={"package": name, "publishers": msgspec.to_builtins(given)},
    )
    added = await services.pipelines.change(entry, *commands)
    shown = [_shown(issuers, each) for each in added]
    return json_response(shown, 201, headers=NO_STORE)


async def remove_trust(context: Context[object], request: Request, name: str, id: str) -> Response:
    """
    ``DELETE /-/package/<name>/trust/<id>``: remove a publisher of a package, whose tokens end.

    :raises NotFound: there is none; :raises Forbidden: it is for other packages, too
    """
    target, identity = await _place(context, request, name)
    detail = {"package": name, **described(stored_in(target), id)}
    entry = Entry(actor_of(request, identity), "publisher.remove", target.path, detail=detail)
    await context.services.pipelines.change(entry, gateway.removal(target, names.package_key(name), id))
    return Response(status=204, headers=NO_STORE)


async def _place(context: Context[object], request: Request, name: str) -> tuple[Repository, Identity]:
    """The repository that a package is published to, and the caller, who may change the publishers of the package."""
    identity = await require_login(context, request)
    await authorize_read(context, request, name)
    target = publish_target(context.services.registry, context.repository)
    await gateway.check_may_change(context.services, identity, target, names.package_key(name))
    return target, identity


def _read(body: object) -> Sequence[_Configuration]:
    try:
        given = msgspec.convert(body if isinstance(body, list) else [body], list[_Configuration])
    except msgspec.ValidationError as error:
        raise Invalid(f"this is no trust configuration: {error}") from None
    if not 1 <= len(given) <= MOST:
        raise Invalid(f"a request has 1 to {MOST} trust configurations")
    return given


def _publisher(issuers: Issuers, given: _Configuration, package: str) -> PipelinePublisher:
    issuer = _issuer(issuers, given)
    claims: dict[str, str | list[str]] = {}
    for name, value in given.claims.items():
        if isinstance(value, _File):
            claims |= _file_claims(issuer, given, name, value.file)
        else:
            claims[name] = literal_claim(value) if isinstance(value, str) else [literal_claim(each) for each in value]
    environment = claims.pop("environment", "")
    unknown = sorted(set(given.permissions) - set(PERMISSIONS))
    if unknown or not given.permissions:
        raise Invalid(f"permissions are {' and '.join(PERMISSIONS)}", "permissions")
    if not isinstance(environment, str):
        raise Invalid("the environment is a text", "environment")
    return PipelinePublisher(
        issuer=issuer.name,
        claims=claims,
        environment=environment,
        packages=[literal(package)],
        actions=[action for permission, action in PERMISSIONS.items() if permission in given.permissions],  # type: ignore[misc]
    )


def _issuer(issuers: Issuers, given: _Configuration) -> Issuer:
    """The issuer in the settings that a type stands for. :raises Invalid: there is none, or there are several"""
    found = issuers.of_kind(given.type)
    if given.type == "circleci":  # each organisation has an issuer of its own
        organisation = given.claims.get(ORGANISATION)
        found = [each for each in found if each.url.rstrip("/").endswith(f"/org/{organisation}")]
    if not found:
        raise Invalid(f"this server accepts no identity tokens of {given.type}: an operator adds it to auth.issuers")
    if len(found) > 1:
        named = ", ".join(each.name for each in found)
        raise Invalid(f"several issuers are of the type {given.type} ({named}): use pkgrepo publisher add")
    return found[0]


def _file_claims(issuer: Issuer, given: _Configuration, name: str, file: str) -> dict[str, str]:
    """The claims for the definition of a pipeline, in the source that the other claims name."""
    source = given.claims.get(SOURCES.get(given.type, ""))
    if name != DEFINITIONS.get(given.type) or not isinstance(source, str):
        raise Invalid(f"a file is that of {' or '.join(DEFINITIONS.values())}, with the repository or project", name)
    return source_claims(issuer, literal_claim(source), file)


def _shown(issuers: Issuers, publisher: Stored) -> dict[str, Any]:
    """A publisher as npm prints it. Patterns with wildcards are shown as they are."""
    issuer = issuers.find(publisher["issuer"])
    kind = (issuer.kind if issuer else "") or publisher["issuer"]
    claims: dict[str, Any] = {name: _plain(value) for name, value in publisher["claims"].items()}
    definition = DEFINITIONS.get(kind, "")
    if isinstance(claims.get(definition), str):
        claims[definition] = {"file": claims[definition].rpartition("/")[2].removesuffix("@**")}
    if publisher.get("environment"):
        claims["environment"] = _plain(publisher["environment"])
    permissions = [name for name, action in PERMISSIONS.items() if action in publisher["actions"]]
    return {"id": entry_id(publisher), "type": kind, "claims": claims, "permissions": permissions}


def _plain(value: str | Sequence[str]) -> str | list[str]:
    """A pattern as the text that it matches, if that is one only."""
    if isinstance(value, str):
        text = ESCAPED.sub(r"\1", value)
        return text if literal_claim(text) == value else value
    return [str(_plain(each)) for each in value]
