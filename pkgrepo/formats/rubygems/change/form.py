"""Reads the small forms of ``gem yank`` and ``gem owner``: in the body, also of a DELETE, or in the query."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.limits import FORM_SIZE
from pkgrepo.gateway.bodies import read_body
from pkgrepo.http.reading.multipart import MultipartLimits, read_form
from pkgrepo.http.request import Request

_MOST_FIELDS = 32
_LIMITS = MultipartLimits(parts=_MOST_FIELDS, text_bytes=FORM_SIZE // _MOST_FIELDS)


async def read_fields(request: Request) -> Mapping[str, str]:
    """
    The fields of a request by name; one in the body wins over one in the query, and the last of several over the rest.

    :raises Invalid: there are too many; :raises TooLarge, Refusal: the body is too large, or no form
    """
    fields = _parse(request.raw_query)
    content_type = request.header(b"content-type") or b""
    if content_type.lower().startswith(b"multipart/form-data"):
        request.body.limit = FORM_SIZE
        async for part in read_form(request.body, content_type, _LIMITS):
            fields[part.name] = await part.read_text()
    else:
        fields.update(_parse(await read_body(request, FORM_SIZE)))
    return fields


def _parse(data: bytes) -> dict[str, str]:
    try:
        return dict(
            parse_qsl(data.decode("ascii"), keep_blank_values=True, errors="replace", max_num_fields=_MOST_FIELDS)
        )
    except ValueError:
        raise Invalid(f"a form must be URL-encoded, with at most {_MOST_FIELDS} fields") from None
