"""The forms that browsers send: their type, size and fields."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.http.answers import Refusal
from pkgrepo.web.visits import FORM_LIMIT, MOST_FIELDS, Form, read_form

BODY = b"name=+demo+&secret=+x+&each=a&each=&each=b&lines=one%0D%0A%0D%0A+two+&box=on&word=%C3%A9"


class Sent:
    """A request with a body; ``limits`` are those with which it was read."""

    def __init__(self, kind: bytes | None, body: bytes = BODY) -> None:
        self.kind = kind
        self.data = body
        self.body = self
        self.limits: list[int] = []

    def header(self, name: bytes) -> bytes | None:
        return self.kind if name == b"content-type" else None

    async def read_all(self, limit: int) -> bytes:
        self.limits.append(limit)
        return self.data


async def read(kind: bytes | None, body: bytes = BODY) -> Form:
    request: Any = Sent(kind, body)
    form = await read_form(request)
    assert request.limits == [FORM_LIMIT]
    return form


@pytest.mark.parametrize(
    "kind",
    [
        b"application/x-www-form-urlencoded",
        b"application/x-www-form-urlencoded; charset=UTF-8",
        b" Application/X-WWW-Form-Urlencoded ;charset=utf-8",
    ],
)
async def test_the_fields_of_a_form_are_read(kind: bytes) -> None:
    form = await read(kind)
    assert (form.text("name"), form.secret("secret"), form.text("word")) == ("demo", " x ", "é")
    assert (form.all("each"), form.lines("lines")) == (["a", "b"], ["one", "two"])
    assert (form.flag("box"), form.flag("absent"), form.text("absent", "default")) == (True, False, "default")


# Those that another site's form can send without asking first (CORS safelist), and some others.
@pytest.mark.parametrize(
    "kind",
    [
        None,
        b"",
        b"text/plain",
        b"multipart/form-data; boundary=x",
        b"application/json",
        b"application/x-www-form-urlencoded2",
        b"text/plain; application/x-www-form-urlencoded",
        b"application/octet-stream",
    ],
)
async def test_a_body_of_another_type_is_refused_unread(kind: bytes | None) -> None:
    request: Any = Sent(kind)
    with pytest.raises(Refusal) as refused:
        await read_form(request)
    assert refused.value.status == 415
    assert request.limits == []


async def test_the_number_of_fields_is_bounded() -> None:
    kind = b"application/x-www-form-urlencoded"
    assert (await read(kind, b"&".join([b"a=1"] * MOST_FIELDS))).all("a") == ["1"] * MOST_FIELDS
    with pytest.raises(Invalid, match=f"more than {MOST_FIELDS} fields"):
        await read(kind, b"&".join([b"a=1"] * (MOST_FIELDS + 1)))
