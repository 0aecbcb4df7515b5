"""
``cargo-credential-pkgrepo``: a credential provider of cargo.

Each line is JSON, of version 1 of the protocol: the provider says which versions it speaks, cargo sends requests until
it closes its end, and each gets a line. ``pkgrepo login`` decides whose credentials they are, so that logging in and
out is not supported here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import IO, Any, Final

import msgspec

from pkgrepo.client.credentials.lending import lend
from pkgrepo.errors import PkgrepoError

VERSIONS: Final = [1]
_MOST: Final = 1024 * 1024  # bytes of a request


def main() -> None:
    """Answer requests until cargo closes its end."""
    serve(sys.stdin.buffer, sys.stdout.buffer, os.environ)


def serve(told: IO[bytes], out: IO[bytes], environ: Mapping[str, str]) -> None:
    """Write what a provider says, and an answer to each request."""
    _say(out, {"v": VERSIONS})
    while line := told.readline(_MOST):
        if line.strip():
            _say(out, answer(line, environ))


def answer(line: bytes, environ: Mapping[str, str]) -> dict[str, Any]:
    """What is said to a request."""
    try:
        asked = msgspec.json.decode(line)
        version, kind, address = asked["v"], asked["kind"], asked["registry"]["index-url"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return _failed("this is no request of version 1")
    if version not in VERSIONS or kind != "get":
        return {"Err": {"kind": "operation-not-supported"}}
    try:
        lent = lend(str(address).removeprefix("sparse+"), environ)
    except (PkgrepoError, OSError) as error:
        return _failed(str(error))
    if lent is None:
        return {"Err": {"kind": "url-not-supported"}}
    found = {"kind": "get", "token": lent.token, "operation_independent": True}
    if lent.expires_at is None:
        return {"Ok": {**found, "cache": "session"}}
    return {"Ok": {**found, "cache": "expires", "expiration": int(lent.expires_at.timestamp())}}


def _failed(sentence: str) -> dict[str, Any]:
    return {"Err": {"kind": "other", "message": sentence, "caused-by": []}}


def _say(out: IO[bytes], value: Any) -> None:
    out.write(msgspec.json.encode(value) + b"\n")
    out.flush()
