"""New repositories, and the settings of one."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

from pkgrepo.errors import Invalid
from pkgrepo.http.responses import Refusal, Response
from pkgrepo.web.rendering.languages import marked, said
from pkgrepo.web.tables import REFUSED, PageTable
from pkgrepo.web.visits import Form, Visit

from .members import with_choices, with_members
from .schema_fields import Field, config_from, fields_of, kept_elsewhere

SETTINGS: Final = "/repositories/<storage>/<name>/settings"
CONFIG: Final = "/repository/<repository>/config"  # in the API
TEST: Final = "/repository/<repository>/upstream/check"
NEW: Final = "/admin/repositories/new"
DEFAULTS: Final = {"name": "", "storage": "main", "type": "Hosted", "visibility": "private", "description": ""}
KINDS: Final = {
    "Hosted": marked("packages that you publish"),
    "Proxy": marked("packages of another registry, fetched when asked for, and kept"),
    "Virtual": marked("several repositories, behind one address"),
}


pages = PageTable()


@pages.get(NEW)
async def show_new(visit: Visit, tested: Any = None) -> Response:
    """The choice of format and kind, and then the form for a repository of these; with what was just ``tested``."""
    sent, defaults = visit.sent, _defaults(visit)
    values = defaults | visit.asked(*defaults)
    config: dict[str, Any] = {}
    with suppress(Invalid):  # the page says so
        if "json" in sent:
            said = _parse(sent.secret("json"))
            values = defaults | {name: said[name] for name in defaults if isinstance(said.get(name), str)}
        elif "format" in sent:
            values = {name: sent.text(name, default) for name, default in defaults.items()}
            config = config_from(await _schema(visit, values["format"]), values["type"], with_members(sent))
        elif visit.query("upstream"):
            config = {"proxy": {"routes": [{"url": visit.query("upstream")}]}}
    types = await visit.api("GET", "/repository/types")
    chosen = bool(visit.query("format") or visit.error or tested) and any(
        values["format"] == each.name and values["type"] in each.types for each in types
    )
    whole = {name: value for name, value in values.items() if name != "type"}
    return visit.page(
        "administration/new_repository.html",
        values=values,
        chosen=chosen,
        kinds=KINDS,
        fields=await _new_fields(visit, values, config) if chosen else [],
        known=await _known_upstream(visit, values) if chosen else "",
        tested=tested,
        text=sent.secret("json") or _text({**whole, "config": {"type": values["type"], **config}}),
        storages=await visit.api("GET", "/storage"),
        formats=(await visit.api("GET", "/info")).formats,
    )


@pages.post(NEW, page=show_new, refused=(*REFUSED, Refusal))
async def make_repository(visit: Visit, form: Form) -> Response:
    """Make a repository of the fields, and show it with the set-up of clients."""
    fields = {name: form.text(name, default) for name, default in _defaults(visit).items()}
    config = config_from(await _schema(visit, fields["format"]), fields.pop("type"), with_members(form))
    if form.flag("test"):
        visit.sent = form
        trial = {"format": fields["format"], "config": config}
        return await show_new(visit, await visit.api("POST", "/upstream/check", fields=trial))
    return _shown(visit, await visit.api("POST", "/repository", fields={**fields, "config": config}))


@pages.post(f"{NEW}/json", page=show_new)
async def make_of_json(visit: Visit, form: Form) -> Response:
    """Make a repository of the JSON text, which is what the API takes."""
    return _shown(visit, await visit.api("POST", "/repository", fields=_parse(form.secret("json"))))


async def _new_fields(visit: Visit, values: dict[str, Any], config: dict[str, Any]) -> list[Field]:
    fields = fields_of(await _schema(visit, values["format"]), values["type"], config)
    return await with_choices(visit, fields, values["format"])


async def _known_upstream(visit: Visit, values: dict[str, Any]) -> str:
    """The address of the public registry, of which a proxy is made; empty if the settings have none."""
    if values["type"] != "Proxy":
        return ""
    with suppress(*REFUSED):  # who may not make one is told when the form is sent
        return str((await visit.api("GET", "/system/starter")).upstreams.get(values["format"], ""))
    return ""


def _shown(visit: Visit, made: Any) -> Response:
    return visit.redirect("/repositories/<storage>/<name>", storage=made.storage_name, name=made.name)


def _defaults(visit: Visit) -> dict[str, str]:
    return {**DEFAULTS, "format": visit.first_format}


@pages.get(SETTINGS)
async def show_settings(visit: Visit, tested: Any = None) -> Response:
    """The settings of a repository, with what was just ``tested``."""
    repository, sent = await visit.repository(), visit.sent
    stored = await visit.api("GET", CONFIG)
    schema, type_, config = await _schema(visit, repository.format), str(repository.type), stored
    with suppress(Invalid):  # the page says so
        if "visibility" in sent:
            config = _changed(schema, type_, stored, sent)
    return visit.page(
        "administration/settings.html",
        repository=repository,
        tab="settings",
        fields=await with_choices(visit, fields_of(schema, type_, config), repository.format, visit.at["repository"]),
        tested=tested,
        text=sent.secret("config") if "config" in sent else _text(config),
        text_sent="config" in sent,
        text_line=json.dumps(stored, ensure_ascii=False),
        collected=await _last_collection(visit),
    )


@pages.get(f"{SETTINGS}/figures")
async def show_figures(visit: Visit) -> Response:
    """What is stored and what can be freed, counted now: with 100,000 packages it takes 0.15 s of processor time."""
    return visit.page(
        "administration/figures.html",
        repository=await visit.repository(),
        tab="settings",
        stats=await visit.api("GET", "/repository/<repository>/stats"),
    )


@pages.post(SETTINGS, page=show_settings, refused=(*REFUSED, Refusal))
async def change_settings(visit: Visit, form: Form) -> Response | None:
    """Change visibility, description, the active flag, and the configuration."""
    repository = await visit.repository()
    before = await visit.api("GET", CONFIG)
    config = _changed(await _schema(visit, repository.format), str(repository.type), before, form)
    if form.flag("test"):
        visit.sent = form
        return await show_settings(visit, await visit.api("POST", TEST, fields={"config": config}))
    visit.unchanged.check()
    await visit.api("PUT", CONFIG, fields=config)
    fields = {**form.texts("visibility", "description"), "active": form.flag("active")}
    await visit.api("PATCH", "/repository/<repository>", fields=fields)
    return None


pages.operation(f"{SETTINGS}/json", "PUT", CONFIG, lambda form: _parse(form.secret("config")), page=show_settings)
pages.operation(
    f"{SETTINGS}/delete",
    "DELETE",
    "/repository/<repository>",
    query=lambda form: {"confirm": form.text("confirm"), "purge": form.flag("purge")},
    page=show_settings,
    then="/",
)


def _changed(schema: Any, type_: str, before: dict[str, Any], form: Form) -> dict[str, Any]:
    """The configuration that a form describes, with what it has no fields for as it was."""
    config = config_from(schema, type_, with_members(form))
    config |= {key: value for key, value in before.items() if key.startswith("x_")}
    kept_elsewhere(before, config)
    return config


async def _last_collection(visit: Visit) -> Any:
    """The last garbage collection; None if there is none, or the caller may not see it."""
    try:
        return await visit.api("GET", "/repository/<repository>/gc")
    except REFUSED:
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
        raise Invalid(said("the text is not JSON: %(error)s", error=error), "/config") from None
    if not isinstance(value, dict):
        raise Invalid(marked("the text is a JSON object"), "/config")
    return value
