"""The webhooks of the server, of a repository, and of a project, with what was sent to their receivers."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from attrs import frozen

from pkgrepo.errors import NotFound
from pkgrepo.http.responses import Response
from pkgrepo.web.refusals import REFUSED
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit, find_repository
from pkgrepo.webhooks.event_types import EVENT_TYPES

PER_PAGE: Final = 50
SHOWN: Final = (*REFUSED, NotFound)
SERVER: Final = "/admin/webhooks"
REPOSITORY: Final = "/repositories/<storage>/<name>/settings/webhooks"
PROJECT: Final = "/projects/<key>/webhooks"

pages = PageTable()


@frozen
class _Place:
    """Webhooks of one place: where its pages are, and the operations of the API with their parameters."""

    page: str
    api: str
    parameters: dict[str, str]
    option: str
    title: str
    repository: Any = None

    @property
    def segments(self) -> list[str]:
        """The segments of the address of the list of webhooks, below ``/ui``."""
        return self.page.strip("/").split("/")

    @property
    def url(self) -> str:
        """The path of the list, below the address of the server."""
        return "/ui/" + "/".join(quote(each, safe="") for each in self.segments)

    @property
    def api_path(self) -> str:
        """The path of the list in the API, below ``/api``."""
        path = self.api
        for name, value in self.parameters.items():
            path = path.replace(f"<{name}>", quote(value, safe=""))
        return path


async def show_webhooks(visit: Visit, **at: str) -> Response:
    """The list, with a form for a new one."""
    return await _list(visit, await _place(visit, at))


async def add_webhook(visit: Visit, form: Form, **at: str) -> Response:
    """Add a webhook, and show its secret."""
    place = await _place(visit, at)
    fields = {name: form.text(name) for name in ("name", "url", "format")}
    try:
        made = await visit.api("POST", place.api, place.parameters, fields={**fields, "events": _events(form)})
    except SHOWN as error:
        return await _list(visit, place, error=str(error))
    return await _webhook(visit, place, made.id, secret=made.secret)


async def show_webhook(visit: Visit, id: str, **at: str) -> Response:
    """One webhook with its deliveries."""
    return await _webhook(visit, await _place(visit, at), id)


async def change_webhook(visit: Visit, form: Form, id: str, **at: str) -> Response:
    """Change a webhook."""
    place = await _place(visit, at)
    fields: dict[str, Any] = {name: form.text(name) for name in ("name", "url", "format")}
    fields |= {"events": _events(form), "active": form.flag("active")}
    try:
        await visit.api("PATCH", f"{place.api}/<id>", {**place.parameters, "id": id}, fields=fields)
    except SHOWN as error:
        return await _webhook(visit, place, id, error=str(error))
    return visit.redirect_to(*place.segments, id)


async def rotate(visit: Visit, _form: Form, id: str, **at: str) -> Response:
    """Make a new secret, and show it."""
    place = await _place(visit, at)
    try:
        changed = await visit.api("POST", f"{place.api}/<id>/rotate-secret", {**place.parameters, "id": id})
    except SHOWN as error:
        return await _webhook(visit, place, id, error=str(error))
    return await _webhook(visit, place, id, secret=changed.secret)


async def test(visit: Visit, _form: Form, id: str, **at: str) -> Response:
    """Send a test event, and show what the receiver answered."""
    place = await _place(visit, at)
    try:
        sent = await visit.api("POST", f"{place.api}/<id>/test", {**place.parameters, "id": id})
    except SHOWN as error:
        return await _webhook(visit, place, id, error=str(error))
    return visit.redirect_to(*place.segments, id, "deliveries", sent.id)


async def delete_webhook(visit: Visit, _form: Form, id: str, **at: str) -> Response:
    """Remove a webhook."""
    place = await _place(visit, at)
    try:
        await visit.api("DELETE", f"{place.api}/<id>", {**place.parameters, "id": id})
    except SHOWN as error:
        return await _webhook(visit, place, id, error=str(error))
    return visit.redirect_to(*place.segments)


async def show_delivery(visit: Visit, id: str, delivery: str, **at: str) -> Response:
    """One delivery with the bodies of its request and response."""
    return await _delivery(visit, await _place(visit, at), id, delivery)


async def redeliver(visit: Visit, _form: Form, id: str, delivery: str, **at: str) -> Response:
    """Send a delivery again."""
    place = await _place(visit, at)
    parameters = {**place.parameters, "id": id, "delivery": delivery}
    try:
        await visit.api("POST", f"{place.api}/<id>/deliveries/<delivery>/redeliver", parameters)
    except SHOWN as error:
        return await _delivery(visit, place, id, delivery, error=str(error))
    return visit.redirect_to(*place.segments, id, "deliveries", delivery)


def _mount() -> None:
    """Add the pages of each place."""
    for path in (SERVER, REPOSITORY, PROJECT):
        pages.get(path)(show_webhooks)
        pages.post(path)(add_webhook)
        pages.get(f"{path}/<id>")(show_webhook)
        pages.post(f"{path}/<id>")(change_webhook)
        pages.post(f"{path}/<id>/rotate")(rotate)
        pages.post(f"{path}/<id>/test")(test)
        pages.post(f"{path}/<id>/delete")(delete_webhook)
        pages.get(f"{path}/<id>/deliveries/<delivery>")(show_delivery)
        pages.post(f"{path}/<id>/deliveries/<delivery>/redeliver")(redeliver)


_mount()


async def _place(visit: Visit, at: dict[str, str]) -> _Place:
    if "key" in at:
        key, page = at["key"], PROJECT.replace("<key>", at["key"])
        return _Place(page, "/project/<key>/webhooks", {"key": key}, f" --project {key}", f"project {key}")
    if not at:
        return _Place(SERVER, "/system/webhooks", {}, "", "the server")
    storage, name = at["storage"], at["name"]
    page, path = REPOSITORY.replace("<storage>", storage).replace("<name>", name), f"{storage}/{name}"
    return _Place(
        page,
        "/repository/<repository>/webhooks",
        {"repository": path},
        f" --repository {path}",
        path,
        await find_repository(visit, storage, name),
    )


def _events(form: Form) -> list[str]:
    return form.text("events").replace(",", " ").split()


async def _list(visit: Visit, place: _Place, error: str = "") -> Response:
    return visit.page(
        "webhooks/webhooks.html",
        listed=await visit.api("GET", place.api, place.parameters),
        at=place,
        types=EVENT_TYPES,
        error=error,
    )


async def _webhook(visit: Visit, place: _Place, id: str, *, error: str = "", secret: str = "") -> Response:
    parameters = {**place.parameters, "id": id}
    query: dict[str, Any] = {"limit": PER_PAGE}
    query |= {name: visit.query(name) for name in ("state", "cursor") if visit.query(name)}
    return visit.page(
        "webhooks/webhook.html",
        webhook=await visit.api("GET", f"{place.api}/<id>", parameters),
        listed=await visit.api("GET", f"{place.api}/<id>/deliveries", parameters, query=query),
        at=place,
        types=EVENT_TYPES,
        error=error,
        secret=secret,
    )


async def _delivery(visit: Visit, place: _Place, id: str, delivery: str, error: str = "") -> Response:
    parameters = {**place.parameters, "id": id}
    return visit.page(
        "webhooks/delivery.html",
        webhook=await visit.api("GET", f"{place.api}/<id>", parameters),
        delivery=await visit.api(
            "GET", f"{place.api}/<id>/deliveries/<delivery>", {**parameters, "delivery": delivery}
        ),
        at=place,
        error=error,
    )
