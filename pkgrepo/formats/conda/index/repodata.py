"""``repodata.json`` of a folder, and ``run_exports.json``: an object of records for each kind of file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

import msgspec

from pkgrepo.formats.conda.names import CONDA, TAR_BZ2
from pkgrepo.repositories.publish.package_lists import ListForm, PackageList
from pkgrepo.repositories.publish.splicing import Spliced

from .channel import JSON_TYPE, PackageRecords, Record

_NO_EXPORTS: Final = b"{}"


def repodata_form(subdir: str) -> ListForm[PackageRecords]:
    """The form of ``repodata.json`` of a folder."""
    tail = b'},"removed":[],"repodata_version":1}'
    return ListForm(JSON_TYPE, partial(_splice, subdir=subdir, body=_record, tail=tail, what="repodata"))


def exports_form(subdir: str) -> ListForm[PackageRecords]:
    """The form of ``run_exports.json`` of a folder (CEP 12)."""
    return ListForm(JSON_TYPE, partial(_splice, subdir=subdir, body=_exports, tail=b"}}", what="exports"))


def _splice(
    _serial: int,
    packages: PackageList[PackageRecords],
    *,
    subdir: str,
    body: Callable[[Record], bytes],
    tail: bytes,
    what: str,
) -> Spliced:
    def chunks(ending: str) -> list[bytes]:
        render = partial(_render, subdir=subdir, ending=ending, body=body)
        found = [each for each in packages.fragments(f"{what} {subdir} {ending}", render) if each]
        return [found[0][1:], *found[1:]] if found else []  # without the first comma

    head = b'{"info":{"subdir":%b},"packages":{' % msgspec.json.encode(subdir)
    parts = [*chunks(TAR_BZ2), b'},"packages.conda":{', *chunks(CONDA)]
    return Spliced(head, parts, tail, b"")


def _render(packages: Iterable[PackageRecords], *, subdir: str, ending: str, body: Callable[[Record], bytes]) -> bytes:
    """The members of the object, each with a comma before it."""
    return b"".join(
        b',"%b":%b' % (each.file.encode(), body(each)) for package in packages for each in package.of(subdir, ending)
    )


def _record(record: Record) -> bytes:
    return record.record


def _exports(record: Record) -> bytes:
    return b'{"run_exports":%b}' % (record.exports or _NO_EXPORTS)
