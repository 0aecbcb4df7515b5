"""
What a tarball has inside that runs at its installation, as npm and its peers find it.

npm runs ``preinstall``, ``install`` and ``postinstall``. Where a package has a ``binding.gyp``, and none of the first
two, it runs ``node-gyp rebuild``, whatever the document of the package says. ``prepare`` runs for dependencies from git
alone.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec

from pkgrepo.archives.inside import Signs, Word, look_inside
from pkgrepo.errors import Invalid

RUN: Final = ("preinstall", "install", "postinstall")
_BUILDERS: Final = re.compile(r"node-gyp|node-pre-gyp|prebuild|cmake-js|neon|napi|cargo|make\b")
_GYP: Final[Sequence[Word]] = ("install_script", "native_build")
_TOP: Final = r"^(?:\./)?[^/]+/"  # clients drop the first part of each path, whatever it is called


def _scripts(data: bytes) -> Collection[Word]:
    """What the scripts of a manifest do. :raises Invalid: it cannot be read"""
    try:
        manifest = msgspec.json.decode(data.removeprefix(codecs.BOM_UTF8))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Invalid(f"package.json is not JSON: {error}") from None
    scripts: Any = manifest.get("scripts") if isinstance(manifest, dict) else None
    run = [str(scripts[each]) for each in RUN if scripts.get(each)] if isinstance(scripts, dict) else []
    builds: list[Word] = ["native_build"] if any(map(_BUILDERS.search, run)) else []
    return ["install_script", *builds] if run else ()


SIGNS: Final = Signs(
    names=[(re.compile(rf"{_TOP}binding\.gyp$"), each) for each in _GYP],
    texts=[(re.compile(rf"{_TOP}package\.json$"), _scripts)],
)


def look(content: int | bytes, path: str) -> frozenset[Word]:
    """What a tarball has inside. Blocks. :raises Invalid: it cannot be read to its end"""
    return look_inside(content, path, SIGNS)
