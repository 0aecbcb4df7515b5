"""Harmless distributions of the shape of an incident, and the page of an index that has them; see L{Drilled}."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pkgrepo.proxy.incidents.making import MACHINE_CODE, SCRIPT, filler, tar_gz_of, zip_of
from pkgrepo.proxy.incidents.shapes import Drilled, Made, Published
from pkgrepo.repositories.clock import format_time

from .names import file_path, normalise

_WHEEL: Final = b"Wheel-Version: 1.0\nGenerator: drill\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_BUILD: Final = b'[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
_PTH: Final = b"# a line that does nothing\n"


def make(name: str, published: Published) -> Made:
    """The wheel of a version, or its source distribution."""
    folder = normalise(name).replace("-", "_")
    stem = f"{folder}-{published.version}"
    members = {f"{folder}/__init__.py": filler(published, "#")}
    if "pth" in published.inside:
        members[f"{folder}_init.pth"] = _PTH
    if "executable" in published.inside:
        members[f"{folder}/run.sh"] = SCRIPT
    if "native_binary" in published.inside:
        members[f"{folder}/harmless.so"] = MACHINE_CODE
    if published.sdist:
        members |= {"PKG-INFO": _metadata(name, published), "pyproject.toml": _BUILD}
        filename, content = f"{stem}.tar.gz", tar_gz_of({f"{stem}/{path}": body for path, body in members.items()})
    else:
        info = f"{stem}.dist-info"
        members |= {f"{info}/METADATA": _metadata(name, published), f"{info}/WHEEL": _WHEEL}
        members[f"{info}/RECORD"] = _record(members, f"{info}/RECORD")
        filename, content = f"{stem}-py3-none-any.whl", zip_of(members)
    return Made(file_path(normalise(name), published.version, filename), content)


def document(name: str, found: Mapping[str, tuple[Published, Made]], url: str) -> bytes:
    """The page of a project in JSON (PEP 691, 700, 740), of an index at an address."""
    files = [_listed(published, made, url) for published, made in found.values()]
    page = {"meta": {"api-version": "1.4"}, "name": normalise(name), "versions": list(found), "files": files}
    return msgspec.json.encode(page)


def _listed(published: Published, made: Made, url: str) -> dict[str, Any]:
    listed: dict[str, Any] = {
        "filename": made.path.rpartition("/")[2],
        "url": f"{url}/{made.path}",
        "hashes": {"sha256": hashlib.sha256(made.content).hexdigest()},
        "size": len(made.content),
        "upload-time": format_time(published.at),
        "yanked": False,
    }
    return {**listed, "provenance": f"{url}/{made.path}.provenance"} if published.proof else listed


def _metadata(name: str, published: Published) -> bytes:
    needs = [f"Requires-Dist: {each}{bound}" for each, bound in published.needs.items()]
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {published.version}", "License: MIT", *needs]
    return "\n".join([*lines, "", ""]).encode()


def _record(members: Mapping[str, bytes], record: str) -> bytes:
    rows = []
    for path, content in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(content)}\n")
    return ("".join(rows) + f"{record},,\n").encode()


DRILLED: Final = Drilled(make=make, document=document, age_days=7)
