"""The routes that describe formats and configuration keys, check a configuration, and show how to set up clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from pkgrepo.auth.permissions.format_rights import has_images
from pkgrepo.errors import Invalid, NotFound
from pkgrepo.gateway.format import Format
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS, PUBLIC, READERS_OF_SOME
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.names import get_format
from pkgrepo.management.api.route import Parameter, Table, Value
from pkgrepo.management.repositories.schema import ConfigKey, RepositoryType, Snippet, Validation
from pkgrepo.management.repositories.stored import example, is_whole, part_name, parts, types, validated, with_part
from pkgrepo.model import RepositoryType as RepositoryKind
from pkgrepo.proxy.definitions import mask_credentials
from pkgrepo.proxy.virtual import publishes

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FORMAT = Parameter("format", "The format, for a key that several formats have; by default the first of them.")


table = Table("repositories")


@table.get("/repository/types", PUBLIC, "List the package formats", every_format=True)
async def list_types(call: Call) -> list[RepositoryType]:
    """Each with its aliases, types of repositories, configuration keys and default configuration."""
    return [
        RepositoryType(
            name=name,
            aliases=list(format_.aliases),
            types=types(format_),
            config_keys=[name, *sorted(parts(format_))],
            defaults=_default(format_),
        )
        for name, format_ in sorted(call.services.formats.items())
    ]


@table.get(
    "/repository/config/<key>/schema",
    PUBLIC,
    "Get the JSON Schema (2020-12) of a configuration key",
    query=[FORMAT],
    every_format=True,
)
async def show_schema(call: Call, key: str) -> dict[str, Any]:
    """The name of a format is the key of its whole configuration; other keys name one part."""
    format_, part = _find(call, key)
    schema = format_.configurations.schema() if part is None else parts(format_)[part]
    return {"$schema": DIALECT, **schema}


@table.get(
    "/repository/config/<key>/default",
    PUBLIC,
    "Get the default of a configuration key",
    query=[FORMAT],
    every_format=True,
)
async def show_default(call: Call, key: str) -> Value[Any]:
    """The value that applies where a configuration does not have the key."""
    format_, part = _find(call, key)
    return Value(_default(format_) if part is None else parts(format_)[part].get("default"))


@table.get(
    "/repository/config/<key>/description",
    PUBLIC,
    "Get the description of a configuration key",
    query=[FORMAT],
    every_format=True,
)
async def show_description(call: Call, key: str) -> ConfigKey:
    """Returns the key with one sentence."""
    format_, part = _find(call, key)
    text = f"The configuration of repositories of format {format_.name}."
    return ConfigKey(key=key, description=text if part is None else parts(format_)[part]["description"])


@table.post(
    "/repository/config/<key>/validate",
    ACCOUNT_HOLDERS,
    "Validate a configuration without storing it",
    query=[FORMAT],
    audit="repository.validate",
    every_format=True,
)
async def validate(call: Call, body: Any, key: str) -> Validation:
    """
    The status is 200 also for an invalid configuration; valid and errors tell the result.

    Whether the members of a virtual repository exist is checked only when the configuration is stored.
    """
    call.audited = True  # nothing is changed
    format_, part = _find(call, key)
    try:
        if part is None and not isinstance(body, dict):
            raise Invalid("a configuration is an object")
        fixed, settings = validated(
            format_, body if part is None else with_part(example(format_, part), part, body), ""
        )
    except Invalid as error:
        pointer = error.pointer.removeprefix(f"/{part}") if part else error.pointer
        return Validation(valid=False, errors=[{"pointer": pointer, "code": "invalid", "message": error.message}])
    return Validation(valid=True, config={**mask_credentials(fixed), **settings})


@table.get(
    "/repository/<repository>/setup",
    READERS_OF_SOME,
    "Get client configuration for the repository",
    query=[
        Parameter("client", "Only snippets for this client, such as pip or uv."),
        Parameter("package", "With version: snippets that install this package."),
        Parameter("version", "The version to install."),
        Parameter("artifact", "The type of what the image holds, if it is no image to run."),
        Parameter("at", "A date, or a time in UTC: snippets for the repository as it was then, such as 2026-09-01."),
    ],
)
async def show_setup(call: Call) -> list[Snippet]:
    """
    Snippets for each client; they use the host name of the repository, if it has one, or the address under which the
    caller reached the server.

    With package and version they install that version, which is not looked for. If an image may hold it, they also say
    how in the first repository of images that the caller may read.
    """
    client = call.query("client").lower()
    format_ = call.format
    name, version = call.query("package"), call.query("version")
    past = call.query("at")
    url = f"{call.base_url}/repositories/{call.view_of(call.repository, past).address}" if past else _url(call)
    if name and version:
        artifact = call.query("artifact")
        found = format_.install_artifact(artifact, url, name, version, push=False) if artifact else ()
        found = [*(found or format_.install(url, name, version)), *await _as_image(call, name, version)]
    else:
        found = format_.setup(url, publishes=not past and publishes(call.repository))
    return [Snippet(**snippet) for snippet in found if not client or snippet["client"] == client]


async def _as_image(call: Call, name: str, version: str) -> Sequence[Any]:
    """How an image is made of a package, if its format has such images, and there is a repository for them."""
    if not call.format.artifact:
        return ()
    fitting = [each for each in call.registry.all() if each.active and each.stage is None and has_images(each)]
    hosted = [each for each in fitting if each.type is RepositoryKind.HOSTED and each.view is None]
    for each in sorted(await call.services.callers.authorizer.visible(call.identity, hosted), key=lambda one: one.path):
        url, make = f"{call.base_url}/repositories/{each.path}", call.services.formats[each.format].install_artifact
        return make(call.format.artifact, url, name, version, push=True)
    return ()


def _url(call: Call) -> str:
    """The address of the repository for its clients: at its host name, if it has one."""
    hosts, _ = call.registry.addresses.names_of(call.repository.path)
    if not hosts or call.repository.parent is not None:
        return f"{call.base_url}/repositories/{call.repository.path}"
    parts = urlsplit(call.base_url)
    # a name without a port counts for each port, such as that by which the caller came
    port = "" if ":" in hosts[0] or parts.port is None else f":{parts.port}"
    return f"{parts.scheme}://{hosts[0]}{port}"


def _find(call: Call, key: str) -> tuple[Format, str | None]:
    """The format that has the key, and the name of the part; None for the whole configuration."""
    formats = call.services.formats
    wanted = call.query("format")
    candidates = [get_format(formats, wanted, "format")] if wanted else list(formats.values())
    for format_ in candidates:
        if is_whole(format_, key):
            return format_, None
    for format_ in candidates:
        name = part_name(format_, key)
        if name in parts(format_):
            return format_, name
    raise NotFound("configuration key", key)


def _default(format_: Format) -> dict[str, Any]:
    fixed, settings = format_.configurations.validate({"type": "Hosted"})
    return {**fixed, **settings}
