"""Normalises lists of versions, and what an upstream says of one version, to the fragments that a module has."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Annotated

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.proxy.parts.values import Context, Entry, Normalised
from pkgrepo.repositories.semver import find_version

from .names import INFO, check_pair, is_of, kind_of, pseudo_time, sort_key


class _Info(msgspec.Struct):
    Version: str
    Time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


def read_info(source: int | bytes, module: str) -> tuple[str, int | None]:
    """The version of a module in a ``.info``, and its time (ms). :raises Invalid: it is none, or not small"""
    try:
        found = msgspec.json.decode(source if isinstance(source, bytes) else b"", type=_Info)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise Invalid("this is no JSON object with a version and a time") from None
    check_pair(module, found.Version)
    return found.Version, None if found.Time is None else round(found.Time.timestamp() * 1000)


def normalise_info(source: bytes, context: Context) -> Normalised:
    """The version that a query stands for. :raises Invalid: see L{read_info}"""
    version, at_ms = read_info(source, context.name.partition("@")[0])
    return Normalised({}, iter([Entry(sort_key(version), version, version, at_ms, False, {INFO: source}, [])]))


def normalise_list(source: bytes, context: Context) -> Normalised:
    """The versions of a module; what can be none of it is left out. :raises Invalid: this is no list, or is cut"""
    words = [line.split()[0] for line in source.decode("utf-8", "replace").splitlines() if line.strip()]
    if any(not each.startswith("v") for each in words):
        raise Invalid("this is no list of versions")
    # Some servers end no last line; but one that is no version then has been cut.
    if words and not source.endswith(b"\n") and find_version(words[-1][1:]) is None:
        raise Invalid("this list of versions ends in the middle of a line")
    return Normalised({}, (entry_of(each) for each in words if is_of(context.name, each)))


def entry_of(version: str) -> Entry:
    """The entry of a version; only a pseudo-version tells when it was made."""
    at_ms = None
    if at := pseudo_time(version):
        with suppress(ValueError):  # no such day
            at_ms = round(datetime.strptime(f"{at}Z", "%Y%m%d%H%M%S%z").timestamp() * 1000)
    return Entry(sort_key(version), version, version, at_ms, False, {kind_of(version): version.encode()}, [])
