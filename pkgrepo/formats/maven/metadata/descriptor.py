"""The prefix by which a Maven plugin is called, from the descriptor in its jar (Maven plugin descriptor 1.1.0)."""

from __future__ import annotations

from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from pkgrepo.archives.source import Source
from pkgrepo.archives.zip_archive import ZipArchive
from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.limits import PLUGIN_SIZE

DESCRIPTOR = "META-INF/maven/plugin.xml"
LONGEST = 200  # characters of a prefix or name
PACKAGING = "maven-plugin"  # of plugins, in their POMs


def find_plugin(content: int | bytes, artifact: str) -> dict[str, str] | None:
    """
    Prefix and name of a plugin, from its jar, given as a descriptor or bytes. Blocks: call it in a thread.

    None if the jar has no descriptor of a plugin, or cannot be read.
    """
    try:
        document = ZipArchive(Source(content, "the jar")).read(DESCRIPTOR, PLUGIN_SIZE)
        root = None if document is None else fromstring(document, forbid_dtd=True)
    except (Invalid, ParseError, DefusedXmlException, LookupError, ValueError):
        return None
    if root is None or root.tag != "plugin":
        return None
    usual = usual_plugin(artifact)
    prefix = (root.findtext("goalPrefix") or "").strip()
    name = " ".join((root.findtext("name") or "").split())
    return {"prefix": prefix[:LONGEST] or usual["prefix"], "name": name[:LONGEST] or usual["name"]}


def usual_plugin(artifact: str) -> dict[str, str]:
    """Prefix and name of a plugin that says nothing of itself."""
    return {"prefix": usual_prefix(artifact), "name": artifact}


def usual_prefix(artifact: str) -> str:
    """The prefix of a plugin with a conventional name: ``foo`` of foo-maven-plugin and of maven-foo-plugin."""
    if artifact == "maven-plugin-plugin":
        return "plugin"
    return artifact.replace("-maven-plugin", "").replace("maven-", "").replace("-plugin", "") or artifact
