"""Quotas: what the server, storages and repositories may hold, and how much of it is used."""

from __future__ import annotations

from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.http.responses import Response
from pkgrepo.untrusted.text import bytes_of
from pkgrepo.web.rendering.languages import marked, said
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

SIZES: Final = ("bytes", "file_size")
LIMITS: Final = ("bytes", "packages", "versions", "file_size")

pages = PageTable()


@pages.get("/admin/quotas")
async def show_quotas(visit: Visit) -> Response:
    """The quotas with bars, and the form that sets one."""
    quotas = await visit.api("GET", "/system/quotas")
    return visit.page(
        "administration/quotas.html", quotas=quotas, chosen=visit.sent.text("place", visit.query("place"))
    )


@pages.post("/admin/quotas", page=show_quotas)
async def set_quota(visit: Visit, form: Form) -> None:
    """
    Set limits of a place: storage/repository, a storage, project:KEY, user:NAME, or nothing for the server.

    An empty field removes a limit only if the form was shown for this place, with its limits.
    """
    place = form.text("place")
    kind, colon, name = place.partition(":")
    if not place:
        operation, parameters = "/system/quota", {}
    elif colon and kind == "user":
        operation, parameters = "/users/<id>/quota", {"id": name}
    elif colon and kind == "project":
        operation, parameters = "/project/<key>/quota", {"key": name}
    elif "/" in place:
        operation, parameters = "/repository/<repository>/quota", {"repository": place}
    else:
        operation, parameters = "/storage/<id>/quota", {"id": place}
    shown = place == form.text("shown")
    fields = {name: _limit(name, form.text(name)) for name in LIMITS if shown or form.text(name)}
    if not fields:
        raise Invalid(marked("say what to limit"))
    await visit.api("PATCH", operation, parameters, fields=fields)


def _limit(name: str, text: str) -> int | None:
    """A limit as people write it; empty: there is none. :raises Invalid: it is no number"""
    if not text:
        return None
    found = bytes_of(text) if name in SIZES else int(text) if text.isascii() and text.isdigit() else None
    if found is None or found != int(found):
        raise Invalid(said("%(text)s is no number, nor a size such as 10GiB", text=repr(text)), f"/{name}")
    return int(found)
