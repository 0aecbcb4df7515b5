"""
What a jar says of itself, for what its POM does not say: the manifest, and the Java that its classes are for.

The Java is that of the first class outside of META-INF, since ``Build-Jdk-Spec`` names the one that compiled them, and
they may need an older one. It counts where there are no classes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pkgrepo.archives.source import Source
from pkgrepo.archives.zip_archive import ZipArchive
from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.upload.pom import POM_SIZE

MANIFEST: Final = "META-INF/MANIFEST.MF"
FACTS: Final = "facts"  # the attribute of a file; metadata of its version, under the names of all formats
MANIFEST_SIZE: Final = 1024 * 1024  # bytes; OSGi bundles list their packages in it
LONGEST: Final = 1000  # characters of a value
OLDEST_CLASS: Final = 45  # JVMS table 4.1-A: class files of Java 1.1, and one more for each release since
_POM: Final = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom\.xml")
_JAVA: Final = re.compile(r"(?:1\.)?([0-9]{1,2})(?:[._].*)?")
# Names of the metadata of versions, and the attributes of manifests that say it, in order (JAR specification, OSGi).
_ATTRIBUTES: Final = {
    "name": ("bundle-name", "implementation-title", "specification-title"),
    "description": ("bundle-description",),
    "license": ("bundle-license",),
    "organization": ("implementation-vendor", "bundle-vendor", "specification-vendor"),
    "home_page": ("bundle-docurl", "implementation-url"),
}


def read_jar(content: int | bytes) -> dict[str, str]:
    """
    What a jar, given as a descriptor or bytes, says of its version. Blocks: call it in a thread.

    Nothing if it cannot be read as an archive.
    """
    try:
        archive = ZipArchive(Source(content, "the jar"), lambda entries: [*_wanted(entries)])
        manifest = _read_manifest(archive.read(MANIFEST, MANIFEST_SIZE) or b"")
        classes = [each for each in _wanted(archive.entries) if each != MANIFEST]
        head = next(archive.pieces(classes[0]), b"") if classes else b""
    except (Invalid, LookupError, ValueError):
        return {}
    facts = {
        name: next((manifest[each] for each in said if manifest.get(each)), "") for name, said in _ATTRIBUTES.items()
    }
    if not facts["home_page"].startswith(("https://", "http://")):
        facts["home_page"] = ""
    facts["license"] = facts["license"].partition(";")[0].strip()  # OSGi: parameters follow
    facts["requires_java"] = _java_of_class(head) or _java(manifest.get("build-jdk-spec", ""))
    return {name: value for name, value in facts.items() if value}


def read_inner_pom(content: int | bytes) -> bytes | None:
    """Return the POM that an archive has, as Maven puts it there; None if it has none, or several. Blocks."""
    try:
        archive = ZipArchive(Source(content, "the jar"), _inner_poms)
        found = _inner_poms(archive.entries)
        return archive.read(found[0], POM_SIZE) if len(found) == 1 else None
    except (Invalid, LookupError, ValueError):
        return None


def _inner_poms(entries: Mapping[str, Any]) -> list[str]:
    return [each for each in entries if _POM.fullmatch(each)][:2]


def _wanted(entries: Mapping[str, Any]) -> list[str]:
    """The manifest, and one class that every Java in which the jar runs has to load."""
    classes = (each for each in entries if each.endswith(".class") and not each.startswith("META-INF/"))
    first = next(
        (each for each in classes if each.rpartition("/")[2] not in ("module-info.class", "package-info.class")), None
    )
    return [each for each in (MANIFEST, first) if each is not None and each in entries]


def _read_manifest(data: bytes) -> dict[str, str]:
    """The attributes of the main section, by lower-case name; lines that begin with a blank go on."""
    found: dict[str, str] = {}
    name = ""
    for line in data.decode("utf-8", "replace").splitlines():
        if not line:
            break
        if line[0] == " " and name:
            found[name] += line[1:]
            continue
        name, colon, value = line.partition(": ")
        name = name.lower() if colon else ""
        if name:
            found[name] = value
    return {name: " ".join(value.split())[:LONGEST] for name, value in found.items()}


def _java_of_class(data: bytes) -> str:
    """The oldest Java that loads a class (JVMS 4.1); empty if the bytes are no class."""
    major = int.from_bytes(data[6:8], "big")
    if data[:4] != b"\xca\xfe\xba\xbe" or not OLDEST_CLASS <= major < OLDEST_CLASS + 100:
        return ""
    return str(max(major - OLDEST_CLASS + 1, 1))


def _java(text: str) -> str:
    found = _JAVA.fullmatch(text)
    return found[1] if found is not None else ""
