"""
The grammar of module paths and versions, and the paths of requests (https://go.dev/ref/mod, golang.org/x/mod/module).

Module paths are case-sensitive. In addresses, and in the paths of files here, each upper-case letter is an exclamation
mark and the lower-case letter, in versions too.

===========================  =========================================================================================
path                         meaning
===========================  =========================================================================================
``MODULE/@v/list``           the versions, a line for each, without pseudo-versions
``MODULE/@latest``           the ``.info`` of the version that clients choose where the list has none
``MODULE/@v/VERSION.KIND``   a file of a version: ``info``, ``mod`` or ``zip``
``MODULE/@v/QUERY.info``     the version that a branch, a tag or a commit stands for, which only an upstream knows
``sumdb/NAME/...``           a checksum database, as an upstream passes it through
``upload``                   where a zip goes that alone tells its module and version
===========================  =========================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from attrs import frozen

from pkgrepo.archives.module_zip import DOTTED, WINDOWS, fits_major, is_file_name, major_suffix
from pkgrepo.errors import Invalid
from pkgrepo.repositories.semver import find_version, is_prerelease, padded
from pkgrepo.untrusted.text import quoted, split_path

LONGEST: Final = 255  # characters of a path or a version, as the file systems of clients have it
MARK: Final = "@v"
LISTED: Final = (f"{MARK}/list", "@latest")  # the documents of a module
KINDS: Final = {"zip": "application/zip", "mod": "text/plain; charset=utf-8", "info": "application/json"}

LIST: Final = "list"  # kinds of fragments
PSEUDO: Final = "pseudo"
INFO: Final = "info"

_PSEUDO: Final = re.compile(r"v[0-9]+\.(?:0\.0-|[0-9]+\.[0-9]+-(?:[^+]*\.)?0\.)([0-9]{14})-[A-Za-z0-9]+(?:\+\w+)?")
_MAJOR: Final = re.compile(r"/v([0-9.]+)")
_PLAIN: Final = re.compile(r"(?!\.)[0-9A-Za-z~._-]+(?<!\.)")
_FIRST: Final = re.compile(r"[0-9a-z.][0-9a-z.-]*")
_SHORT: Final = re.compile(r"[^.]*~[0-9]+(?:\..*)?")  # names of Windows, such as progra~1
_ESCAPED: Final = re.compile(r"!([a-z])")
_DATABASE: Final = re.compile(
    r"sumdb/[0-9a-z][0-9a-z.-]*(?:/[\w.-]+)*?/(?:supported|latest|lookup/(?P<module>.+?)@[^/@]+|"
    r"tile/[0-9]+/(?:data|[0-9]+)/(?:x[0-9]{3}/)*[0-9]{3}(?:\.p/[0-9]{1,3})?)"
)


def escape(text: str) -> str:
    """A path or version as addresses have it."""
    return re.sub("[A-Z]", lambda found: f"!{found[0].lower()}", text)


def unescape(text: str) -> str:
    """The path or version that an address means. :raises Invalid: it has upper-case letters, or a stray mark"""
    found = _ESCAPED.sub(lambda match: match[1].upper(), text)
    if escape(found) != text or "!" in found:
        raise Invalid(f"{quoted(text)} is not escaped: upper-case letters are written as '!' and the lower-case one")
    return found


def check_module(path: str) -> str:
    """A module path (``module.CheckPath``). :raises Invalid: it is none"""
    parts = path.split("/")
    major = _MAJOR.fullmatch(f"/{parts[-1]}")
    if len(path) > LONGEST:
        wrong = f"it has more than {LONGEST} characters"
    elif not (wrong := next(filter(None, map(_wrong_part, parts)), "")):
        if "." not in parts[0] or not _FIRST.fullmatch(parts[0]):
            wrong = "its first part is no host name with a dot, in lower case"
        elif major is not None and not re.fullmatch("[2-9]|[1-9][0-9]+", major[1]):
            wrong = "it ends with /v0 or /v1, or with what is no major version"
        elif path.startswith(DOTTED) and not major_suffix(path):
            wrong = f"on {DOTTED[:-1]} it ends with the major version behind a dot, as in yaml.v3"
    if wrong:
        raise Invalid(f"{quoted(path)} is no module path: {wrong}", "module")
    return path


def _wrong_part(part: str) -> str:
    if not _PLAIN.fullmatch(part):
        return "its parts have letters, digits, '-', '_', '~' and dots between them, and none is empty"
    return f"{part!r} is a name of Windows" if WINDOWS.match(part) or _SHORT.fullmatch(part) else ""


def check_version(text: str) -> str:
    """A canonical version. :raises Invalid: it is none"""
    if text[:1] != "v" or find_version(text[1:]) is None or text.partition("+")[2] not in ("", "incompatible"):
        raise Invalid(f"{quoted(text)} is no version such as v1.2.3, v1.2.3-rc.1 or v2.0.0+incompatible", "version")
    return text


def check_pair(module: str, version: str) -> tuple[str, str]:
    """A module and a version of it. :raises Invalid: they are none, or do not fit together (``module.Check``)"""
    check_module(module)
    if not fits_major(module, check_version(version)):
        wanted = major_suffix(module)[1:] or "v0 or v1, or v2 and more with +incompatible"
        raise Invalid(f"{version} is no version of {quoted(module)}: its major version is {wanted}", "version")
    return module, version


def is_of(module: str, version: str) -> bool:
    """Whether a text is a version that a module can have."""
    with suppress(Invalid):
        return bool(check_pair(module, version))
    return False


def pseudo_time(version: str) -> str:
    """The time in a pseudo-version, as 14 digits; empty for another version."""
    match = _PSEUDO.fullmatch(version)
    return "" if match is None else match[1]


def kind_of(version: str) -> str:
    """The kind of the fragment of a version: pseudo-versions are in no list."""
    return PSEUDO if pseudo_time(version) else LIST


def newest(versions: Iterable[str]) -> str | None:
    """What ``@latest`` means: the highest release, else the highest pre-release, else the newest pseudo-version."""
    ranked = [(not is_prerelease(each), not (at := pseudo_time(each)), at, sort_key(each), each) for each in versions]
    return max(ranked)[-1] if ranked else None


def sort_key(text: str) -> bytes:
    """The place of a version in the order of Semantic Versioning. :raises Invalid: it is no version"""
    return bound_key(check_version(text))


def bound_key(text: str) -> bytes:
    """The same of a bound of a range, which may lack its ``v`` and the numbers behind the first."""
    found = find_version(padded(text.removeprefix("v")))
    if found is None:
        raise Invalid(f"{quoted(text)} is no version such as v1.2.3", "version")
    return found.sort


def file_path(module: str, version: str, kind: str) -> str:
    """The public path of a file of a version."""
    return f"{escape(module)}/{MARK}/{escape(version)}.{kind}"


@frozen
class Path:
    """
    What a request is about: its ``kind`` is ``list``, ``latest``, ``query``, ``sumdb``, ``upload``, or that of a file.

    ``version`` is that of the file, or the query. ``text`` is the decoded path, as far as it was read from a request.
    """

    kind: str
    module: str
    version: str
    text: str = ""

    @property
    def key(self) -> str:
        """The key of the document with what an upstream says: a module, with what is asked of it behind an ``@``."""
        return self.module if self.kind == "list" else f"{self.module}@{self.version or self.kind}"


def read_path(raw_path: bytes) -> Path | None:
    """What a path as on the wire means; None for nothing. :raises Invalid: it is not escaped, or names no module"""
    parts = split_path(raw_path)
    text = "/".join(parts or ())
    if (database := _DATABASE.fullmatch(text)) is not None:
        return Path("sumdb", check_module(unescape(database["module"])) if database["module"] else "", "", text)
    for ending, kind in (("/@latest", "latest"), (f"/{MARK}/{LIST}", LIST)):
        if text.endswith(ending):
            return Path(kind, check_module(unescape(text.removesuffix(ending))), "", text)
    module, mark, name = text.rpartition(f"/{MARK}/")
    version, _, kind = name.rpartition(".")
    if not mark or kind not in KINDS or "/" in name:
        return Path(text, "", "", text) if text == "upload" else None
    module, version = check_module(unescape(module)), unescape(version)
    is_query = kind == INFO and not is_of(module, version) and is_file_name(version)
    return Path("query", module, version, text) if is_query else Path(kind, *check_pair(module, version), text)


def parse_path(path: str) -> Path:
    """A stored path. :raises Invalid: it is none of a version"""
    found = read_path(path.encode())
    if found is None:
        raise Invalid(f"{quoted(path)} is no path of a module proxy", "path")
    return found
