"""What the server knows of the Maven format before a repository needs it."""

from __future__ import annotations

from typing import Final

from pkgrepo.formats.maven.names import parse_package_key
from pkgrepo.formats.maven.owners import RIGHTS
from pkgrepo.formats.maven.version_order import sort_key
from pkgrepo.gateway.format import FormatFacts, Look
from pkgrepo.repositories.format import Ecosystem, PackageUrls
from pkgrepo.repositories.version_ranges import one_build

FACTS: Final = FormatFacts(
    name="maven",
    aliases=("java",),
    package_urls=PackageUrls(types=("maven",), name=lambda name: name.replace("/", ":", 1)),
    rights=RIGHTS,
    ecosystem=Ecosystem(name="Maven", package_key=parse_package_key, sort=sort_key, builds=one_build(sort_key)),
    branch_names=("solrsearch", "api/maven", "api/badge"),
    look=Look(
        icon=('<path d="M4 20c2-8 6.5-14 16-16-.5 5-2 9-6.5 11.5C11 17 8.5 17 6.2 16.6M8.5 12.5h5M11 9.5h5.3"/>'),
        light="#b5500d",
        dark="#ffa868",
        programs="Maven, Gradle, sbt",
        starter="maven",
    ),
)
