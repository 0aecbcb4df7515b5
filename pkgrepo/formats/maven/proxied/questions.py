"""
The questions that are asked of upstream repositories.

===========================  =================================  ========================================================
what                         routes                             asked again after
===========================  =================================  ========================================================
metadata of an artifact      all; what they answer is joined    ``cache_ttl``
metadata of a snapshot       all; what they answer is joined    ``cache_ttl``, at most a minute
a file of a release, or of   in order, or the one that has      never
a build of a snapshot        served the version before
a file of a literal          the same                           ``cache_ttl``, at most a minute
snapshot
indexes and catalogues of    in order                           ``cache_ttl``
the whole repository
===========================  =================================  ========================================================

Other plain files are not asked for: no rule about names protects their paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from pkgrepo.errors import NotFound
from pkgrepo.formats.maven.media_types import media_type
from pkgrepo.formats.maven.names import package_directory
from pkgrepo.formats.maven.paths import METADATA_NAME, ArtifactFile, Checksum, Directory, PlainFile, parse_text
from pkgrepo.formats.maven.push_rules import permission_keys
from pkgrepo.formats.maven.version_order import sort_key
from pkgrepo.proxy.addressed.request import FileRequest
from pkgrepo.proxy.documents.held import DocumentRequest

SNAPSHOT_TTL_S: Final = 60
ALGORITHMS: Final = ("md5", "sha1", "sha512")  # beside sha256, which every blob has
COMPANIONS: Final = ("sha1", "md5")
PREFIXES: Final = ".meta/prefixes.txt"  # Maven 4 asks for nothing that it does not list
CATALOGUE: Final = "archetype-catalog.xml"
INDEXES: Final = (".index/", ".meta/")
NORMALISER: Final = "pkgrepo.formats.maven.proxied.normaliser:normalise"
ACCEPT: Final = "application/xml, text/xml, */*;q=0.5"


def metadata_question(key: str) -> DocumentRequest:
    """The metadata with this key: C{group:artifact}, or C{group:artifact:version} of a snapshot."""
    group, artifact, *version = key.split(":")
    package_key = f"{group}:{artifact}"
    directory = "/".join([package_directory(package_key), *version])
    path = quote(f"{directory}/{METADATA_NAME}", safe="/+!$&'()*,;=@")
    return DocumentRequest(
        key=f"metadata/{key}",
        package_key=package_key,
        name=key,
        urls=lambda url: (f"{url}/{path}",),
        accept=ACCEPT,
        normaliser=NORMALISER,
        merges=True,
        most_ttl_s=SNAPSHOT_TTL_S if version else None,
    )


def file_question(key: str, path: str) -> FileRequest:
    """
    The file at a path; ``key`` is one by which permissions for it are asked.

    :raises NotFound: upstreams are not asked for it, or the key is that of something else
    """
    target = parse_text(path)
    if isinstance(target, Checksum | Directory) or key not in permission_keys(target):
        raise NotFound("file", path)
    if isinstance(target, ArtifactFile):
        at = target.coordinates
        literal = target.literal_snapshot
        return FileRequest(
            path=path,
            media_type=media_type(path),
            package_key=at.package_key,
            version_key=at.version,
            version_text=at.version,
            sort=sort_key(at.version),
            lasting=not literal,
            most_ttl_s=SNAPSHOT_TTL_S if literal else None,
            algorithms=ALGORITHMS,
            companions=COMPANIONS,
        )
    if not isinstance(target, PlainFile) or not (path == CATALOGUE or path.startswith(INDEXES)):
        raise NotFound("file", path)
    return FileRequest(
        path=path,
        media_type=media_type(path),
        lasting=False,
        of_one_route=path == PREFIXES,
        algorithms=ALGORITHMS,
        companions=COMPANIONS,
    )


def probes(url: str) -> Sequence[tuple[str, Sequence[int]]]:
    """
    Requests that tell whether a URL is that of a repository; no path is in all of them.

    The metadata of a plugin group are in nearly every mirror. Others answer for a path that they do not have, or show
    a page for the whole.
    """
    return (
        (f"{url}/org/apache/maven/plugins/{METADATA_NAME}", (200,)),
        (f"{url}/{CATALOGUE}", (200,)),
        (f"{url}/", (200, 404)),
    )
