"""Client configuration snippets for one Maven repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

POM_REPOSITORIES = """\
<repositories>
  <repository>
    <id>pkgrepo</id>
    <url>{url}</url>
    <releases><enabled>true</enabled></releases>
    <snapshots><enabled>true</enabled></snapshots>
  </repository>
</repositories>
"""

POM_DISTRIBUTION = """\
<distributionManagement>
  <repository>
    <id>pkgrepo</id>
    <url>{url}</url>
  </repository>
  <snapshotRepository>
    <id>pkgrepo</id>
    <url>{url}</url>
  </snapshotRepository>
</distributionManagement>
"""

SETTINGS = """\
<settings>
  <servers>
    <server>
      <id>pkgrepo</id>
      <username>USERNAME</username>
      <password>TOKEN</password>
    </server>
  </servers>
</settings>
"""


def snippets(url: str, *, publishes: bool) -> Sequence[Mapping[str, str]]:
    """Snippets for the repository at ``url``; with ``publishes`` also those for deploying."""
    found = [
        ("maven", "Download artifacts", "pom.xml", "xml", POM_REPOSITORIES),
        ("maven", "Credentials", "~/.m2/settings.xml", "xml", SETTINGS),
    ]
    if publishes:
        found.append(("maven", "Deploy artifacts", "pom.xml", "xml", POM_DISTRIBUTION))
    return tuple(
        {"client": client, "title": title, "file": file, "language": language, "text": text.replace("{url}", url)}
        for client, title, file, language, text in found
    )
