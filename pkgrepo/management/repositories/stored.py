"""Configurations of repositories: their parts, their validation, and how they are stored and shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from attrs import evolve

from pkgrepo.auth.permissions.publishers import iter_publishers
from pkgrepo.errors import Conflict, Forbidden, Invalid
from pkgrepo.gateway.format import Format
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.names import check_independent, get_repository
from pkgrepo.model import Action, Repository, RepositoryType
from pkgrepo.oidc.publishers import check_given, needed_actions, warnings_about
from pkgrepo.proxy.checks import route_warnings
from pkgrepo.proxy.configuration import proxy_config_of, virtual_config_of
from pkgrepo.proxy.definitions import ca_files, configure_repository, seal_credentials, shown_config, with_member_ids
from pkgrepo.proxy.virtual import exposure_warnings, targets_in
from pkgrepo.repositories.configuration import agreed
from pkgrepo.repositories.policy.effective import SHORT
from pkgrepo.repositories.policy.facts import own_faults, own_rules_checked
from pkgrepo.repositories.retention.rules import check_versions

# Our names of parts, by those that clients of other servers use in any format.
_PART_ALIASES = {"package_retention": "retention"}

_OTHER_FORMS = {"config": "proxy"}  # parts that replace another one when they are set


def validated(
    format_: Format, config: Mapping[str, Any], pointer: str, before: Repository | None = None
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """
    A valid configuration as it is stored: the fixed object, and the settings. ``before`` is the repository that has it.

    :raises Invalid: it is not valid; the pointer of the error begins with ``pointer``
    """
    with pointing_into(pointer):
        fixed, settings = format_.configurations.validate(config)
        stored = {} if before is None else before.settings
        settings = own_rules_checked(format_, settings, stored)
        check_versions(settings, format_.ranges, stored)
    return fixed, settings


@contextmanager
def pointing_into(pointer: str, cut: str = "") -> Iterator[None]:
    """Let the pointers of L{Invalid} errors begin with ``pointer`` instead of ``cut``."""
    try:
        yield
    except Invalid as error:
        raise Invalid(error.message, pointer + error.pointer.removeprefix(cut)) from None


def warnings_of(call: Call, repository: Repository, *, names_rules: bool = False) -> list[str]:
    """
    Warnings about the configuration of a repository, as sentences for everybody who may read it.

    With ``names_rules`` they are for those who may read its rules, too: rules may be about packages that others do not
    know of.
    """
    format_ = call.services.formats.get(repository.format)
    own = [] if format_ is None else format_.warnings(repository)
    faults = route_warnings(call.shared.proxy.upstreams, repository)
    issuers = call.shared.pipelines.issuers
    found = (each for publisher in iter_publishers(repository) for each in warnings_about(issuers, publisher))
    about = [f"publishers: {each}" for each in dict.fromkeys(found)]
    rules = [] if format_ is None else [f"policy: {each}" for each in own_faults(format_, repository)]
    if rules and not names_rules:
        rules = [f"policy: rules of the repository that would be refused now: {len(rules)}"]
    return [*own, *rules, *faults, *exposure_warnings(call.registry, repository), *about]


async def try_routes(call: Call, repository: Repository) -> None:
    """Connect to the routes of a proxy that was just configured, so that ``warnings_of`` knows which cannot be used."""
    if repository.type is RepositoryType.PROXY and repository.active:
        await call.shared.proxy.upstreams.try_connections(repository.id, proxy_config_of(repository).routes)


def joined(format_: Format, configs: Mapping[str, Any]) -> dict[str, Any]:
    """
    The whole configuration, from the older form with one entry for each part.

    :raises Invalid: the entry of the format is no object
    """
    whole: dict[str, Any] = {}
    for key, value in configs.items():
        if is_whole(format_, key):
            if not isinstance(value, dict):
                raise Invalid("a configuration is an object", f"/configs/{key}")
            whole.update(value)
        else:
            whole[part_name(format_, key)] = value
    return whole


def part_name(format_: Format, key: str) -> str:
    """The name of a configuration part, from one of its aliases; other keys are returned unchanged."""
    return {**_PART_ALIASES, **format_.configurations.part_aliases}.get(key, key)


def is_whole(format_: Format, key: str) -> bool:
    """Whether a key names the whole configuration of the format, not a part of it."""
    return key == format_.name or key in format_.aliases


def parts(format_: Format) -> dict[str, Mapping[str, Any]]:
    """
    The JSON Schema of each part of a format's configuration by key, with the definitions that it refers to.

    A part that repository types have in different forms has the schemas of all.
    """
    schema = format_.configurations.schema()
    definitions: Mapping[str, Any] = schema.get("$defs", {})
    forms: dict[str, list[Mapping[str, Any]]] = {}
    for variant in _variants(schema, definitions):
        for key, value in variant["properties"].items():
            if key != "type" and value not in forms.setdefault(key, []):
                forms[key].append(value)
    return {
        key: {**values[0], "$defs": definitions}
        if len(values) == 1
        else {"description": values[0]["description"], "anyOf": values, "$defs": definitions}
        for key, values in forms.items()
    }


def with_part(config: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """The configuration with a part set, or without it when ``value`` is None."""
    besides = {key: each for key, each in config.items() if key not in (name, _OTHER_FORMS.get(name))}
    return besides if value is None else {**besides, name: value}


def types(format_: Format) -> list[str]:
    """The types of repositories that the format serves."""
    schema = format_.configurations.schema()
    return [variant["properties"]["type"]["enum"][0] for variant in _variants(schema, schema.get("$defs", {}))]


def example(format_: Format, key: str) -> dict[str, Any]:
    """A valid configuration of the first repository type that has this part."""
    schema = format_.configurations.schema()
    for variant in _variants(schema, schema.get("$defs", {})):
        properties = variant["properties"]
        if key in properties:
            examples = {name: value["examples"][0] for name, value in properties.items() if "examples" in value}
            return {"type": properties["type"]["enum"][0], **examples}
    return {"type": types(format_)[0]}


def _variants(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "$ref" in schema:
        return _variants(definitions[schema["$ref"].rsplit("/", 1)[-1]], definitions)
    if "anyOf" in schema:
        return [found for each in schema["anyOf"] for found in _variants(each, definitions)]
    return [schema]


# Parts without secrets; those of routes are masked.
SHOWN_IN_AUDIT = frozenset(
    {
        "auth",
        "cache",
        "cache_ttl",
        "members",
        "policy",
        "proxy",
        "publish_snapshots_to",
        "publish_to",
        "publishers",
        "push_rules",
        "quota",
        "replicate",
        "resolution",
        "retention",
        "routes_are_replicas",
    }
)


def whole(call: Call, repository: Repository) -> dict[str, Any]:
    """The configuration as one object, as people may see it: the fixed object and the settings."""
    return {**shown_config(repository, call.registry), **repository.settings}


async def storable(call: Call, config: Mapping[str, Any], before: Repository | None = None) -> Mapping[str, Any]:
    """
    The fixed object as it is stored, with ids of members and sealed secrets, for ``before`` or a new repository.

    New members are repositories that the caller may read: readers of the virtual repository get their packages.
    Only system managers name files of the server that no route has named before.

    :raises Invalid: there is no such member, or a masked secret has no stored one; :raises Forbidden: see above
    """
    stored = before.config if before is not None else {}
    if ca_files(config) - ca_files(stored) and not await call.services.callers.authorizer.may_use(
        call.identity, "system"
    ):
        raise Forbidden("only system managers and admins may set ca_file, which names a file of the server")
    named: dict[str, Repository] = {}
    if config["type"] == RepositoryType.VIRTUAL:
        present = virtual_config_of(before).members if before and before.type is RepositoryType.VIRTUAL else ()

        async def may_add(repository: Repository) -> bool:
            return repository.uid in present or await call.may(Action.READ, repository)

        places = {name: f"/members/{index}" for index, name in enumerate(config["members"])}
        targets = {name: f"/{key}" for key, name in targets_in(config).items()}
        for name, pointer in (targets | places).items():
            named[name] = await get_repository(call.registry, name, pointer, may_add)
    return seal_credentials(with_member_ids(config, lambda name, _: named[name]), call.services.secrets, stored)


async def check_publishers(call: Call, settings: Mapping[str, Any], before: Repository) -> None:
    """
    Check the publishers in the settings of a repository that were not there ``before``.

    :raises Invalid: there is no such issuer; :raises Forbidden: the caller may not do there what they would
    """
    present = before.settings.get("publishers") or []
    for index, each in enumerate(settings.get("publishers") or ()):
        if each in present:
            continue
        check_given(call.shared.pipelines.issuers, each, f"/publishers/{index}")
        for action in sorted(needed_actions(each)):
            if not await call.may(action, before):
                raise Forbidden(f"only those who have the action {str(action)!r} here give it to a pipeline")


async def _check_rules(call: Call, settings: Mapping[str, Any], repository: Repository) -> None:
    """
    Check that the caller may change what the rules of a repository are, if ``settings`` do so.

    Like blocks, rules are for those with the action admin: who may only edit must not be able to lift them.

    :raises Forbidden: the caller may not
    """
    before, after = repository.policy, settings.get("policy") or {}
    if all((before.get(key) or None) == (after.get(key) or None) for key in ("rules", SHORT)):
        return
    if await call.services.callers.authorizer.may_use(call.identity, "system") or await call.may(
        Action.ADMIN, repository
    ):
        return
    raise Forbidden(
        f"policy.rules and policy.{SHORT} are changed by those who have the action admin in {repository.path}"
    )


async def replace(call: Call, repository: Repository, config: dict[str, Any], prefix: str) -> Repository:
    """Check and write ``config``; ``prefix`` is the pointer of the body in it, and is cut from errors."""
    check_independent(repository)
    with pointing_into("", cut=prefix):
        fixed, settings = validated(call.services.formats[repository.format], config, "", repository)
        if fixed["type"] != repository.type:
            raise Conflict(f"a repository of type {repository.type} cannot become one of type {fixed['type']}")
        if agreed(fixed) != agreed(repository.config):
            raise Conflict(f"the patterns by which packages of {repository.path} are named stay as they are")
        fixed = await storable(call, fixed, repository)
        await check_publishers(call, settings, repository)
        await _check_rules(call, settings, repository)
        before, after = {**repository.config, **repository.settings}, {**fixed, **settings}
        changed = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
        if not changed:
            call.audited = True
            return repository
        format_, is_hosted = call.services.formats[repository.format], repository.type is RepositoryType.HOSTED
        shown = whole(call, repository), whole(call, evolve(repository, config=fixed, settings=settings))
        result: Repository = await call.write(
            call.entry(detail=_difference(changed, *shown)),
            configure_repository,
            repository,
            companions=call.services.companions,
            config=fixed,
            settings=settings,
            now_ms=call.now_ms,
            then=format_.compact if is_hosted and format_.list_settings.intersection(changed) else None,
        )
    call.services.on_change(result)
    await try_routes(call, result)
    return result


def _difference(changed: list[str], before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "changed": changed,
        "before": {key: before.get(key) for key in changed if key in SHOWN_IN_AUDIT},
        "after": {key: after.get(key) for key in changed if key in SHOWN_IN_AUDIT},
    }
