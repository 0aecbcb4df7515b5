"""Makes module zips, like ``golang.org/x/mod/zip`` does, and broken ones."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence

MIT = "Permission is hereby granted, free of charge, to any person obtaining a copy of this software"
TEXTS = {"MIT": MIT, "GPL-3.0-only": "SPDX-License-Identifier: GPL-3.0-only"}


def go_mod(module: str, *requires: str, go: str = "1.20", more: str = "") -> bytes:
    """A go.mod; ``requires`` are a module, a blank and a version each."""
    lines = "".join(f"\nrequire {each}\n" for each in requires)
    return f"module {module}\n\ngo {go}\n{lines}{more}".encode()


def module_files(module: str, *requires: str, **more: str) -> dict[str, bytes]:
    """The files of a module with a package that has one function."""
    package = module.rpartition("/")[2].rpartition(".")[2].replace("-", "").lower()
    source = f'package {package}\n\nfunc Hello() string {{ return "hi" }}\n'
    return {"go.mod": go_mod(module, *requires, **more), "lib.go": source.encode()}


def raw_zip(entries: Sequence[tuple[str | zipfile.ZipInfo, bytes]], *, stored: bool = False) -> bytes:
    """A zip with these entries, in this order, the same bytes each time."""
    out, method = io.BytesIO(), zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in entries:
            given = isinstance(name, zipfile.ZipInfo)
            archive.writestr(name if given else zipfile.ZipInfo(name), content, None if given else method)
    return out.getvalue()


def make_module(
    module: str,
    version: str,
    files: Mapping[str, bytes] | None = None,
    *,
    licence: str = "",
    stored: bool = False,
    prefix: str | None = None,
) -> bytes:
    """A module zip with these files, or with a package of one function."""
    held = dict(module_files(module) if files is None else files)
    if licence:
        held["LICENSE"] = TEXTS[licence].encode()
    top = f"{module}@{version}/" if prefix is None else prefix
    return raw_zip([(f"{top}{name}", content) for name, content in held.items()], stored=stored)


def h1(files: Mapping[str, bytes]) -> str:
    """The hash of go.sum of files by the names of their entries."""
    lines = "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))
    return "h1:" + base64.b64encode(hashlib.sha256(lines.encode()).digest()).decode()


def h1_of_zip(data: bytes) -> str:
    """The hash of go.sum of a module zip."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return h1({each: archive.read(each) for each in archive.namelist()})


def escaped(text: str) -> str:
    """A path or version as addresses have it."""
    return "".join(f"!{each.lower()}" if each.isupper() else each for each in text)


def path(module: str, version: str, kind: str = "zip") -> str:
    """The address of a file of a version, below a repository."""
    return f"/{escaped(module)}/@v/{escaped(version)}.{kind}"
