"""
The members of a virtual repository in its form: a row for each repository that could be one, with its place in order.

A row is a number; without one the repository is no member. It works without scripts, and keeps what two rows with the
same number say in the order of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from attrs import evolve

from pkgrepo.errors import Invalid
from pkgrepo.web.rendering.languages import marked, said
from pkgrepo.web.visits import Form, Visit

from .schema_fields import Field

MEMBERS: Final = "/members"
TARGETS: Final = ("/publish_to", "/publish_snapshots_to")
MOST_ROWS: Final = 200  # repositories; if there are more, members are written one on each line


async def with_choices(visit: Visit, fields: Sequence[Field], format_: str, own: str = "") -> list[Field]:
    """
    The fields of a form, in which members and the targets of uploads are chosen from the repositories of the format.

    ``own`` is the path of the repository itself.
    """
    if not any(each.name == MEMBERS for each in fields):
        return list(fields)
    listed = await visit.api("GET", "/repository", query={"format": format_, "limit": 1000})
    others = [each for each in listed.items if f"{each.storage_name}/{each.name}" != own]
    hosted = [f"{each.storage_name}/{each.name}" for each in others if each.type == "Hosted"]
    found = []
    for each in fields:
        if each.name == MEMBERS and len(others) <= MOST_ROWS:
            found.append(evolve(each, kind="members", children=_rows(visit.sent, each, others)))
        elif each.name in TARGETS:
            known = [each.value] if each.value and each.value not in hosted else []
            choices = [("", marked("nowhere")), *((path, path) for path in (*hosted, *known))]
            found.append(evolve(each, kind="choice", choices=choices, value=each.value or ""))
        else:
            found.append(each)
    return found


def _rows(sent: Form, field: Field, others: Iterable[Any]) -> list[Field]:
    """A row for each repository: members first, in their order."""
    places = {path: at for at, path in enumerate(str(field.value or "").split(), 1)}
    types = {f"{each.storage_name}/{each.name}": str(each.type) for each in others}
    ordered = sorted({**types, **dict.fromkeys(places, "")}, key=lambda path: (places.get(path, len(places) + 1), path))
    return [
        Field(
            name=f"{MEMBERS} {path}",
            label=path,
            kind="number",
            value=sent.text(f"{MEMBERS} {path}", str(places.get(path, ""))),
            help=types.get(path, ""),
        )
        for path in ordered
    ]


def with_members(form: Form) -> Form:
    """The form with the members on lines, as the schema has them. :raises Invalid: a place is no number"""
    prefix = f"{MEMBERS} "
    rows = [(name.removeprefix(prefix), form.text(name)) for name in form.fields if name.startswith(prefix)]
    if not rows or MEMBERS in form:
        return form
    places = []
    for path, text in rows:
        if text and not (text.isascii() and text.isdigit() and len(text) < 6):
            raise Invalid(said("%(text)s is no place in order, such as 1 or 2", text=repr(text)), f"{prefix}{path}")
        if text:
            places.append((int(text), path))
    lines = "\n".join(path for _, path in sorted(places, key=lambda each: each[0]))
    return Form({**form.fields, MEMBERS: [lines]})
