"""New repositories, and the settings of one."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Final

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.http.answers import Answer
from pkgrepo.web.finding import find_repository
from pkgrepo.web.forms import Form
from pkgrepo.web.refused import REFUSED
from pkgrepo.web.tables import Pages, PageTable
from pkgrepo.web.visits import Visit

SETTINGS: Final = "/repositories/<storage>/<name>/settings"
DEFAULTS: Final = {"name": "", "storage": "main", "format": "npm", "type": "Hosted", "visibility": "private"}


class RepositoryForms(Pages):
    """The forms that make, change and delete repositories."""

    pages: ClassVar = PageTable()

    @pages.get("/admin/repositories/new")
    async def new(self, visit: Visit) -> Answer:
        """The form for a new repository."""
        values = DEFAULTS | {"description": "", "upstream": "", "members": "", "config": ""}
        return await self._new(visit, values | {name: visit.query(name) for name in values if visit.query(name)})

    @pages.post("/admin/repositories/new")
    async def make(self, visit: Visit, form: Form) -> Answer:
        """Make a repository, and show it with the set-up of clients."""
        names = (*DEFAULTS, "description", "upstream", "members", "config")
        values = {name: form.text(name) for name in names}
        try:
            fields = {name: values[name] for name in ("name", "storage", "format", "visibility", "description")}
            made = await visit.api("POST", "/repository", fields={**fields, "config": _config(values, form)})
        except REFUSED as error:
            return await self._new(visit, values, error=str(error))
        return visit.redirect_to("repositories", made.storage_name, made.name)

    @pages.get(SETTINGS)
    async def settings(self, visit: Visit, storage: str, name: str) -> Answer:
        """The settings of a repository."""
        return await self._settings(visit, storage, name)

    @pages.post(SETTINGS)
    async def change(self, visit: Visit, form: Form, storage: str, name: str) -> Answer:
        """Change visibility, description and the active flag, and the configuration if it differs."""
        place, text = {"repository": f"{storage}/{name}"}, form.secret("config")
        fields = {"visibility": form.text("visibility"), "description": form.text("description")}
        try:
            config = _parse(text)
            await visit.api(
                "PATCH", "/repository/<repository>", place, fields={**fields, "active": form.flag("active")}
            )
            if config != await visit.api("GET", "/repository/<repository>/config", place):
                await visit.api("PUT", "/repository/<repository>/config", place, fields=config)
        except REFUSED as error:
            return await self._settings(visit, storage, name, error=str(error), text=text)
        return visit.redirect_to("repositories", storage, name, "settings")

    @pages.post(f"{SETTINGS}/delete")
    async def delete(self, visit: Visit, form: Form, storage: str, name: str) -> Answer:
        """Delete the repository, whose name is typed as confirmation."""
        query: dict[str, str | bool] = {"confirm": form.text("confirm"), "purge": form.flag("purge")}
        try:
            await visit.api("DELETE", "/repository/<repository>", {"repository": f"{storage}/{name}"}, query=query)
        except REFUSED as error:
            return await self._settings(visit, storage, name, error=str(error))
        return visit.redirect("/")

    async def _new(self, visit: Visit, values: dict[str, str], error: str = "") -> Answer:
        return visit.page(
            "administration/new_repository.html",
            status=422 if error else 200,
            values=values,
            storages=await visit.api("GET", "/storage"),
            types=await visit.api("GET", "/repository/types"),
            error=error,
        )

    async def _settings(
        self, visit: Visit, storage: str, name: str, *, error: str = "", text: str | None = None
    ) -> Answer:
        repository = await find_repository(visit, storage, name)
        place = {"repository": f"{storage}/{name}"}
        config = await visit.api("GET", "/repository/<repository>/config", place)
        return visit.page(
            "administration/settings.html",
            status=422 if error else 200,
            repository=repository,
            tab="settings",
            text=json.dumps(config, indent=2, ensure_ascii=False) if text is None else text,
            stats=await self._stats(visit, place),
            error=error,
        )

    async def _stats(self, visit: Visit, place: dict[str, str]) -> Any:
        try:
            return await visit.api("GET", "/repository/<repository>/stats", place)
        except (*REFUSED, NotFound):
            return None


def _config(values: dict[str, str], form: Form) -> dict[str, Any]:
    """The configuration that the fields of the form describe; those of the JSON text win."""
    config: dict[str, Any] = {"type": values["type"]}
    if values["type"] == "Proxy" and values["upstream"]:
        config["proxy"] = {"routes": [{"url": values["upstream"]}]}
    if values["type"] == "Virtual":
        config["members"] = form.lines("members")
    return config | _parse(values["config"] or "{}")


def _parse(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise Invalid(f"the configuration is not JSON: {error}", "/config") from None
    if not isinstance(value, dict):
        raise Invalid("the configuration is a JSON object", "/config")
    return value
