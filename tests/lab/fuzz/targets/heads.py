"""What requests say in their heads and forms: lines and fields, ranges, credentials, negotiation, parts of forms."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from pkgrepo.auth.login.credentials import is_blank, parse_authorization
from pkgrepo.formats.container.proxied.registry_client import next_page, parse_challenges
from pkgrepo.gateway.callers.tokens import take_token
from pkgrepo.gateway.digest_fields import parse_checksum, read_digests
from pkgrepo.http.answering.conditional import is_current, is_wanted, parse_date
from pkgrepo.http.answering.negotiation import best_encoding, best_media_type
from pkgrepo.http.limits import HttpLimits
from pkgrepo.http.reading.head import check_part_of_head, check_version, parse_fields, parse_request_line
from pkgrepo.http.reading.multipart import read_form
from pkgrepo.http.reading.proxies import TrustedProxies
from pkgrepo.http.reading.ranges import UnsatisfiableError, parse_chunk_range, parse_range
from pkgrepo.oidc.identity_tokens import parse as parse_identity_token
from tests.lab.fuzz.target import REFUSALS, Target

LIMITS = HttpLimits()


def _head(data: bytes) -> None:
    """As the channel reads it: the line, the fields, and what both say together."""
    check_part_of_head(data, 0, data.find(b"\r\n\r\n"), LIMITS)
    line, _, rest = data.partition(b"\r\n")
    read = parse_request_line(line)
    fields = parse_fields(rest.partition(b"\r\n\r\n")[0] + b"\r\n", LIMITS)
    check_version(read, fields)
    take_token(read, fields)


def _ranges(data: bytes) -> None:
    for size in (0, 1, 1000, 2**63):
        with suppress(UnsatisfiableError):
            found = parse_range(data, size)
            assert found is None or 0 <= found[0] < found[1] <= size, "a range outside of the content"
    with suppress(ValueError):
        found = parse_chunk_range(data)
        assert found.start >= 0 < found.length, "a chunk without a byte"


def _authorization(data: bytes) -> None:
    is_blank(data)
    parse_authorization(data.removeprefix(b"\0"), "127.0.0.1", "123456")


def _fields_of(data: bytes) -> dict[bytes, bytes]:
    return parse_fields(data.removesuffix(b"\r\n") + b"\r\n", LIMITS).values


def _conditions(data: bytes) -> None:
    fields = _fields_of(data)
    is_wanted(fields, b'"a"', 1_700_000_000)
    is_current(fields, b'W/"a"', None)
    for value in fields.values():
        parse_date(value)
        best_media_type(value, (b"application/json", b"text/html;level=1"))
        best_encoding(value, (b"gzip", b"zstd", b"identity"))
        text = value.decode("latin-1")
        parse_challenges(text)
        next_page("a/tags/list?n=1", text)
        with suppress(*REFUSALS):
            parse_checksum(value, "sha256")


def _digest_fields(data: bytes) -> None:
    fields = _fields_of(data)
    request: Any = SimpleNamespace(header=fields.get)
    read_digests(request)


def _forwarded(data: bytes) -> None:
    fields = _fields_of(data)
    request: Any = SimpleNamespace(
        client=SimpleNamespace(host="127.0.0.1"),
        host=SimpleNamespace(host="127.0.0.1", port=80),
        isSecure=lambda: False,
        authority=b"registry.example",
        fields=fields,
    )
    for header in ("Forwarded", "X-Forwarded-For"):
        TrustedProxies(["127.0.0.0/8", "unix"], header, public_url="https://registry.example/x").resolve(request)  # type: ignore[arg-type]


def _form(data: bytes) -> None:
    """The first line is the type, the rest the body, which arrives in pieces of 100 bytes."""
    content_type, _, body = data.partition(b"\n")
    pieces = [body[at : at + 100] for at in range(0, len(body), 100)]

    async def read_piece() -> bytes:
        return pieces.pop(0) if pieces else b""

    async def read_all() -> None:
        reading: Any = SimpleNamespace(read=read_piece)
        async for part in read_form(reading, content_type):
            assert isinstance(part.name, str), "a part without a name"
            if part.filename is None:
                with suppress(*REFUSALS):
                    await part.read_text()
            else:
                assert part.headers is not None
                async for _ in part:
                    pass

    _finish(read_all)


def _finish(make: Callable[[], Awaitable[None]]) -> None:
    """Run a coroutine that waits for nothing."""
    waiting: Any = make()
    try:
        waiting.send(None)
    except StopIteration:
        return
    raise AssertionError("it waits")


def _identity(data: bytes) -> None:
    parse_identity_token(data.decode("latin-1"))


def targets() -> Iterator[Target]:
    """All of them."""
    lines = (
        b"GET /a?b HTTP/1.1\r\n",
        b"Host: a\r\n",
        b"Content-Length: 1\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"\r\n ",
    )
    yield Target("head", _head, lines)
    yield Target("range", _ranges, (b"bytes=", b"-", b",", b"/*", b" "))
    yield Target("authorization", _authorization, (b"Basic ", b"bearer ", b",", b"="))
    yield Target("negotiation", _conditions, (b'"', b"W/", b";q=", b"=", b",", b"*", b"GMT"))
    yield Target("digest-fields", _digest_fields, (b"Digest: sha=", b"=:", b","))
    yield Target("forwarded", _forwarded, (b"for=", b"host=", b'"', b"[::", b";", b","))
    words = (b"--b\r\n", b"--b--", b'Content-Disposition: form-data; name="', b"filename*=", b"\r\n\r\n", b"\\", b"%zz")
    yield Target("form", _form, words)
    yield Target("identity-token", _identity, (b".", b"e30", b"W10"))
