"""
Archives of Helm charts, with the files of a folder that ``helm package`` takes.

What ``.helmignore`` names is left out, by the rules of helm's package ``ignore``: a pattern without a slash is for
names in any folder, one with a slash for whole paths; one that ends with a slash is for folders; behind an exclamation
mark is what alone stays. Links are followed.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from pkgrepo.client.packing.packed import Packed
from pkgrepo.errors import Invalid
from pkgrepo.untrusted.yaml_text import read_mapping

MANIFEST: Final = "Chart.yaml"
IGNORED: Final = ".helmignore"
LARGEST_FILE: Final = 5 * 1024 * 1024  # bytes; helm reads no larger one in a chart
_ALWAYS: Final = "templates/.?*"

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_VERSION: Final = re.compile(r"v?[0-9][0-9A-Za-z.+-]*")
_TOKENS: Final = re.compile(r"\\(.)|(\*)|(\?)|\[(\^?)((?:\\.|[^\]\\])+)\]|(.)", re.DOTALL)


def pack_chart(folder: Path, version: str, place: Path) -> Packed:
    """
    Make the archive of a chart; its version is in its ``Chart.yaml``, and ``version`` must be that or empty.

    :raises Invalid: the folder is no chart, or helm would not pack it; :raises OSError: a file cannot be read
    """
    manifest = read_mapping((folder / MANIFEST).read_bytes(), str(folder / MANIFEST))
    name, said = manifest.get("name"), manifest.get("version")
    if not (isinstance(name, str) and isinstance(said, str) and _NAME.fullmatch(name) and _VERSION.fullmatch(said)):
        raise Invalid(f"{folder / MANIFEST} has no name and version of a chart")
    if version not in ("", said):
        raise Invalid(f"the version of a chart is that in its {MANIFEST}, which is {said}", "version")
    files = sorted(_files_in(folder, folder, read_rules(folder / IGNORED), ()))
    _check_dependencies(folder, manifest, {each for each, _ in files})
    target = place / f"{name}-{said}.tgz"
    with (
        target.open("xb") as raw,
        gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for inner, path in files:
            if path.stat().st_size > LARGEST_FILE:
                raise Invalid(f"{path} has more than {LARGEST_FILE} bytes, and helm would not read the chart")
            content = path.read_bytes()
            member = tarfile.TarInfo(f"{name}/{inner}")
            member.size, member.mode = len(content), 0o644
            tar.addfile(member, io.BytesIO(content))
    return Packed(target, f"{name} {said}")


def _files_in(top: Path, folder: Path, rules: Rules, above: tuple[Path, ...]) -> Iterator[tuple[str, Path]]:
    real = folder.resolve()
    if real in above:
        raise Invalid(f"{folder} is a link to a folder that it is in")
    for path in folder.iterdir():
        inner = path.relative_to(top).as_posix()
        if rules.ignore(inner, is_folder=path.is_dir()):
            continue
        if path.is_dir():
            yield from _files_in(top, path, rules, (*above, real))
        elif path.is_file():
            yield inner, path
        else:
            raise Invalid(f"{path} is no file and no folder")


def _check_dependencies(folder: Path, manifest: dict[str, Any], files: set[str]) -> None:
    """:raises Invalid: a chart that this one needs is not in its folder ``charts``"""
    needs = manifest.get("dependencies")
    if needs is None and "requirements.yaml" in files:  # of charts of the first version
        needs = read_mapping((folder / "requirements.yaml").read_bytes(), "requirements.yaml").get("dependencies")
    for each in needs if isinstance(needs, list) else ():
        name = each.get("name") if isinstance(each, dict) else None
        archive = re.compile(rf"charts/{re.escape(str(name))}-v?[0-9][^/]*\.tgz")
        if f"charts/{name}/{MANIFEST}" not in files and not any(map(archive.fullmatch, files)):
            raise Invalid(f"the chart needs {name}, which is not in {folder / 'charts'}: run helm dependency update")


@frozen
class _Rule:
    pattern: re.Pattern[str]
    keeps: bool
    for_folders: bool
    whole: bool

    def matches(self, path: str) -> bool:
        return self.pattern.fullmatch(path if self.whole else path.rpartition("/")[2]) is not None


@frozen
class Rules:
    """What of a chart is left out."""

    rules: tuple[_Rule, ...]

    def ignore(self, path: str, *, is_folder: bool) -> bool:
        """Whether a file or folder is left out, by its path without a slash at its end; the first rule decides."""
        for each in self.rules:
            if each.keeps:  # what it does not name is left out
                if (each.for_folders and not is_folder) or not each.matches(path):
                    return True
            elif (is_folder or not each.for_folders) and each.matches(path):
                return True
        return False


def read_rules(path: Path) -> Rules:
    """The rules of a file, if there is one, and that which is always there. :raises Invalid: a rule is malformed"""
    lines = path.read_text("utf-8-sig").splitlines() if path.is_file() else []
    stripped = [each.strip() for each in (*lines, _ALWAYS)]
    return Rules(tuple(_rule(each) for each in stripped if each and not each.startswith("#")))


def _rule(text: str) -> _Rule:
    if "**" in text:
        raise Invalid(f"{IGNORED} has {text!r}: helm knows no '**'")
    pattern = text.removeprefix("!")
    for_folders, keeps = pattern.endswith("/"), pattern != text
    pattern = pattern.removesuffix("/")
    whole, pattern = "/" in pattern, pattern.removeprefix("/")
    return _Rule(_pattern(pattern), keeps, for_folders, whole)


def _pattern(text: str) -> re.Pattern[str]:
    """A pattern of Go's ``filepath.Match`` as a regular expression. :raises Invalid: it is malformed"""
    made = ""
    for found in _TOKENS.finditer(text):
        escaped, star, one, negated, some, plain = found.groups()
        if star:
            made += "[^/]*"
        elif one:
            made += "[^/]"
        elif some:
            some = re.sub(r"([\[&~|])", r"\\\1", some)
            made += f"(?!/)[{negated}{some}]"
        elif plain in ("[", "\\"):
            raise Invalid(f"{IGNORED} has a pattern that is none: {text!r}")
        else:
            made += re.escape(escaped or plain)
    try:
        return re.compile(made)
    except re.error:
        raise Invalid(f"{IGNORED} has a pattern that is none: {text!r}") from None
