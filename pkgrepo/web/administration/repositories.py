"""New repositories, and the settings of one."""

from __future__ import annotations

import json
from typing import Any, Final

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.http.responses import Response
from pkgrepo.web.refusals import REFUSED
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit, find_repository

from .schema_fields import config_from, fields_of, kept_elsewhere

SETTINGS: Final = "/repositories/<storage>/<name>/settings"
NEW: Final = "/admin/repositories/new"
DEFAULTS: Final = {"name": "", "storage": "main", "type": "Hosted", "visibility": "private"}
KINDS: Final = {
    "Hosted": "packages that you publish",
    "Proxy": "packages of another registry, fetched when asked for, and kept",
    "Virtual": "several repositories, behind one address",
}


pages = PageTable()


@pages.get(NEW)
async def show_new(visit: Visit) -> Response:
    """The choice of format and kind, and then the form for a repository of these."""
    values = _defaults(visit)
    values |= {name: visit.query(name) for name in values if visit.query(name)}
    return await _new(visit, values, chosen=bool(visit.query("format")))


@pages.post(NEW)
async def make_repository(visit: Visit, form: Form) -> Response:
    """Make a repository of the fields, and show it with the set-up of clients."""
    values = {name: form.text(name, default) for name, default in _defaults(visit).items()}
    config: dict[str, Any] | None = None
    try:
        config = config_from(await _schema(visit, values["format"]), values["type"], form)
        fields = {name: value for name, value in values.items() if name != "type"}
        made = await visit.api("POST", "/repository", fields={**fields, "config": config})
    except REFUSED as error:
        return await _new(visit, values, chosen=True, config=config, error=str(error))
    return visit.redirect_to("repositories", made.storage_name, made.name)


@pages.post(f"{NEW}/json")
async def make_of_json(visit: Visit, form: Form) -> Response:
    """Make a repository of the JSON text, which is what the API takes."""
    text, values = form.secret("json"), _defaults(visit)
    try:
        fields = _parse(text)
        values |= {name: fields[name] for name in values if isinstance(fields.get(name), str)}
        made = await visit.api("POST", "/repository", fields=fields)
    except REFUSED as error:
        return await _new(visit, values, chosen=True, text=text, error=str(error))
    return visit.redirect_to("repositories", made.storage_name, made.name)


def _defaults(visit: Visit) -> dict[str, str]:
    return {**DEFAULTS, "format": visit.first_format, "description": ""}


@pages.get(SETTINGS)
async def show_settings(visit: Visit, storage: str, name: str) -> Response:
    """The settings of a repository."""
    return await _settings(visit, storage, name)


@pages.get(f"{SETTINGS}/figures")
async def show_figures(visit: Visit, storage: str, name: str) -> Response:
    """What is stored and what can be freed, counted now: with 100,000 packages it takes 0.15 s of processor time."""
    return visit.page(
        "administration/figures.html",
        repository=await find_repository(visit, storage, name),
        tab="settings",
        stats=await visit.api("GET", "/repository/<repository>/stats", {"repository": f"{storage}/{name}"}),
    )


@pages.post(SETTINGS)
async def change_settings(visit: Visit, form: Form, storage: str, name: str) -> Response:
    """Change visibility, description, the active flag, and the configuration."""
    place = {"repository": f"{storage}/{name}"}
    fields = {"visibility": form.text("visibility"), "description": form.text("description")}
    config: dict[str, Any] | None = None
    try:
        repository = await find_repository(visit, storage, name)
        before = await visit.api("GET", "/repository/<repository>/config", place)
        schema = await _schema(visit, repository.format)
        config = config_from(schema, str(repository.type), form)
        config |= {key: value for key, value in before.items() if key.startswith("x_")}
        kept_elsewhere(before, config)
        await visit.api("PUT", "/repository/<repository>/config", place, fields=config)
        await visit.api("PATCH", "/repository/<repository>", place, fields={**fields, "active": form.flag("active")})
    except REFUSED as error:
        return await _settings(visit, storage, name, error=str(error), config=config)
    return visit.redirect_to("repositories", storage, name, "settings")


@pages.post(f"{SETTINGS}/json")
async def configure(visit: Visit, form: Form, storage: str, name: str) -> Response:
    """Replace the configuration by the JSON text."""
    text = form.secret("config")
    try:
        place = {"repository": f"{storage}/{name}"}
        await visit.api("PUT", "/repository/<repository>/config", place, fields=_parse(text))
    except REFUSED as error:
        return await _settings(visit, storage, name, error=str(error), text=text)
    return visit.redirect_to("repositories", storage, name, "settings")


@pages.post(f"{SETTINGS}/delete")
async def delete_repository(visit: Visit, form: Form, storage: str, name: str) -> Response:
    """Delete the repository, whose name is typed as confirmation."""
    query: dict[str, str | bool] = {"confirm": form.text("confirm"), "purge": form.flag("purge")}
    try:
        await visit.api("DELETE", "/repository/<repository>", {"repository": f"{storage}/{name}"}, query=query)
    except REFUSED as error:
        return await _settings(visit, storage, name, error=str(error))
    return visit.redirect("/")


async def _new(
    visit: Visit,
    values: dict[str, str],
    *,
    chosen: bool,
    config: dict[str, Any] | None = None,
    text: str = "",
    error: str = "",
) -> Response:
    types = await visit.api("GET", "/repository/types")
    storages = await visit.api("GET", "/storage")
    chosen = chosen and any(values["format"] == each.name and values["type"] in each.types for each in types)
    shown = config or {}
    whole = {name: value for name, value in values.items() if name != "type"}
    return visit.page(
        "administration/new_repository.html",
        values=values,
        chosen=chosen,
        kinds=KINDS,
        fields=fields_of(await _schema(visit, values["format"]), values["type"], shown) if chosen else [],
        text=text or _text({**whole, "config": {"type": values["type"], **shown}}),
        storages=storages,
        types=types,
        error=error,
    )


async def _settings(
    visit: Visit,
    storage: str,
    name: str,
    *,
    error: str = "",
    config: dict[str, Any] | None = None,
    text: str | None = None,
) -> Response:
    repository = await find_repository(visit, storage, name)
    place = {"repository": f"{storage}/{name}"}
    stored = await visit.api("GET", "/repository/<repository>/config", place)
    shown = stored if config is None else config
    return visit.page(
        "administration/settings.html",
        repository=repository,
        tab="settings",
        fields=fields_of(await _schema(visit, repository.format), str(repository.type), shown),
        text=_text(shown) if text is None else text,
        text_sent=text is not None,
        text_line=json.dumps(stored, ensure_ascii=False),
        collected=await _last_collection(visit, place),
        error=error,
    )


async def _last_collection(visit: Visit, place: dict[str, str]) -> Any:
    """The last garbage collection; None if there is none, or the caller may not see it."""
    try:
        return await visit.api("GET", "/repository/<repository>/gc", place)
    except (*REFUSED, NotFound):
        return None


async def _schema(visit: Visit, format_: str) -> Any:
    """The JSON Schema of the configurations of a format."""
    return await visit.api("GET", "/repository/config/<key>/schema", {"key": format_}, query={"format": format_})


def _text(config: dict[str, Any]) -> str:
    return json.dumps(config, indent=2, ensure_ascii=False)


def _parse(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"the text is not JSON: {error}", "/config") from None
    if not isinstance(value, dict):
        raise Invalid("the text is a JSON object", "/config")
    return value
