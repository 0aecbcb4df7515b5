"""The webhooks of the server, of a repository, and of a project, with what was sent to their receivers."""

from __future__ import annotations

from typing import Any, Final

from attrs import frozen

from pkgrepo.http.responses import Response
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit, parameters_of
from pkgrepo.webhooks.event_types import EVENT_TYPES

PER_PAGE: Final = 50
PLACES: Final = {  # the pages of lists of webhooks, and the operations of the API
    "/repositories/<storage>/<name>/settings/webhooks": "/repository/<repository>/webhooks",
    "/projects/<key>/webhooks": "/project/<key>/webhooks",
    "/admin/webhooks": "/system/webhooks",
}

pages = PageTable()


@frozen
class _Place:
    """
    Webhooks of one place: the paths of the list as a page and in the API, the operation with its parameters.

    ``option`` is that of a command line.
    """

    url: str
    api_path: str
    operation: str
    parameters: dict[str, str]
    option: str
    title: str
    repository: Any = None


async def _place(visit: Visit) -> _Place:
    operation = _operation(visit)
    parameters = {name: visit.at[name] for name in parameters_of(operation)}
    match parameters:
        case {"repository": path}:
            option, title = f" --repository {path}", path
        case {"key": key}:
            option, title = f" --project {key}", visit.language.text("project %(key)s", key=key)
        case _:
            option, title = "", visit.language.text("the server")
    page = next(each for each, of_api in PLACES.items() if of_api == operation)
    repository = await visit.repository() if "repository" in parameters else None
    return _Place(f"/ui{visit.filled(page)}", visit.filled(operation), operation, parameters, option, title, repository)


def _operation(visit: Visit) -> str:
    """The operation that lists the webhooks of the place that the page is about."""
    return next(each for each in PLACES.values() if visit.at.keys() >= set(parameters_of(each)))


async def show_webhooks(visit: Visit) -> Response:
    """The list, with a form for a new one."""
    at = await _place(visit)
    listed = await visit.api("GET", at.operation)
    return visit.page("webhooks/webhooks.html", listed=listed, at=at, types=EVENT_TYPES)


async def show_webhook(visit: Visit, secret: str = "") -> Response:
    """One webhook with its deliveries; with its ``secret`` if that has just been made."""
    at = await _place(visit)
    query = visit.asked("state", "cursor", limit=PER_PAGE)
    return visit.page(
        "webhooks/webhook.html",
        webhook=await visit.api("GET", f"{at.operation}/<id>"),
        listed=await visit.api("GET", f"{at.operation}/<id>/deliveries", query=query),
        at=at,
        types=EVENT_TYPES,
        secret=secret,
    )


async def show_delivery(visit: Visit) -> Response:
    """One delivery with the bodies of its request and response."""
    at = await _place(visit)
    return visit.page(
        "webhooks/delivery.html",
        webhook=await visit.api("GET", f"{at.operation}/<id>"),
        delivery=await visit.api("GET", f"{at.operation}/<id>/deliveries/<delivery>"),
        at=at,
    )


async def add_webhook(visit: Visit, form: Form) -> Response:
    """Add a webhook, and show its secret."""
    made = await visit.api("POST", _operation(visit), fields=_webhook(form))
    visit.at["id"] = made.id
    return await show_webhook(visit, made.secret)


async def rotate(visit: Visit, _form: Form) -> Response:
    """Make a new secret, and show it."""
    changed = await visit.api("POST", f"{_operation(visit)}/<id>/rotate-secret")
    return await show_webhook(visit, changed.secret)


def _webhook(form: Form) -> dict[str, Any]:
    return {**form.texts("name", "url", "format"), "events": form.text("events").replace(",", " ").split()}


for _page, _api in PLACES.items():
    _one, _delivery = f"{_page}/<id>", f"{_page}/<id>/deliveries/<delivery>"
    pages.get(_page)(show_webhooks)
    pages.get(_one)(show_webhook)
    pages.get(_delivery)(show_delivery)
    pages.post(_page, page=show_webhooks)(add_webhook)
    pages.post(f"{_one}/rotate", page=show_webhook)(rotate)
    pages.operation(
        _one, "PATCH", f"{_api}/<id>", lambda form: {**_webhook(form), "active": form.flag("active")}, page=show_webhook
    )
    pages.operation(f"{_one}/test", "POST", f"{_api}/<id>/test", page=show_webhook, then=f"{_one}/deliveries/<made.id>")
    pages.operation(f"{_one}/delete", "DELETE", f"{_api}/<id>", page=show_webhook, then=_page)
    pages.operation(
        f"{_delivery}/redeliver", "POST", f"{_api}/<id>/deliveries/<delivery>/redeliver", page=show_delivery
    )
