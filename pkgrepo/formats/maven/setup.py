"""Setup snippets for Java's build tools, as the API shows them for a repository."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit
from xml.sax.saxutils import escape  # writes only

from pkgrepo.repositories.snippets import Snippet, snippet
from pkgrepo.tool_files.editing import render
from pkgrepo.tool_files.tools.java import ID, maven_settings

REALM: Final = "pkgrepo"  # that of refusals: sbt and Ivy choose credentials by it

_POM: Final = """\
<repositories>
  <repository>
    <id>{id}</id>
    <url>{url}</url>
    <releases><enabled>true</enabled></releases>
    <snapshots><enabled>true</enabled></snapshots>
  </repository>
</repositories>
"""

_DISTRIBUTION: Final = """\
<distributionManagement>
  <repository>
    <id>{id}</id>
    <url>{url}</url>
  </repository>
  <snapshotRepository>
    <id>{id}</id>
    <url>{url}</url>
  </snapshotRepository>
</distributionManagement>
"""

_GRADLE_READ: Final = """\
repositories {
    maven {
        url = uri("{url}")
{insecure}        credentials {
            username = "USERNAME"
            password = "TOKEN"
        }
    }
}
"""

_GRADLE_GROOVY: Final = """\
plugins {
    id 'java-library'
    id 'maven-publish'
}

publishing {
    publications {
        library(MavenPublication) {
            from components.java
        }
    }
    repositories {
        maven {
            name = '{id}'
            url = uri('{url}')
{insecure}            credentials(PasswordCredentials)
        }
    }
}
"""

_GRADLE_KOTLIN: Final = """\
plugins {
    `java-library`
    `maven-publish`
}

publishing {
    publications {
        create<MavenPublication>("library") {
            from(components["java"])
        }
    }
    repositories {
        maven {
            name = "{id}"
            url = uri("{url}")
{insecure}            credentials(PasswordCredentials::class)
        }
    }
}
"""

_GRADLE_PROPERTIES: Final = """\
{id}Username=USERNAME
{id}Password=TOKEN
"""

_SBT_READ: Final = """\
resolvers += ("{id}" at "{url}"){insecure}
credentials += Credentials("{realm}", "{host}", "USERNAME", "TOKEN")
"""

_SBT_PUBLISH: Final = """\
publishMavenStyle := true
publishTo := Some(("{id}" at "{url}"){insecure})
credentials += Credentials("{realm}", "{host}", "USERNAME", "TOKEN")
"""

_IVY: Final = """\
<ivysettings>
  <settings defaultResolver="{id}"/>
  <credentials host="{host}" realm="{realm}" username="USERNAME" passwd="TOKEN"/>
  <resolvers>
    <ibiblio name="{id}" m2compatible="true" root="{url}/"/>
  </resolvers>
</ivysettings>
"""

# The server computes checksums. Ivy would find them before its own upload of them, and refuse to overwrite.
_IVY_PUBLISH: Final = """\
<ivysettings>
  <settings defaultResolver="{id}"/>
  <credentials host="{host}" realm="{realm}" username="USERNAME" passwd="TOKEN"/>
  <resolvers>
    <ibiblio name="{id}" m2compatible="true" root="{url}/"/>
    <url name="{id}-publish" m2compatible="true" checksums="">
      <artifact pattern="{url}/[organisation]/[module]/[revision]/[artifact]-[revision](-[classifier]).[ext]"/>
    </url>
  </resolvers>
</ivysettings>
"""

_MILL: Final = """\
def repositoriesTask = Task.Anon {
  super.repositoriesTask() ++ Seq(
    coursier.maven.MavenRepository(
      "{url}",
      authentication = Some(coursier.core.Authentication("USERNAME", "TOKEN"))
    )
  )
}
"""

_MILL_PUBLISH: Final = """\
mill mill.scalalib.PublishModule/publishAll --publishArtifacts __.publishArtifacts --sonatypeCreds USERNAME:TOKEN \\
    --sonatypeUri {url} --sonatypeSnapshotUri {url} --stagingRelease false --signed false
"""

_CURL: Final = "curl -u USERNAME:TOKEN -T FILE {url}/com/example/app/1.0/app-1.0.jar\n"


def snippets(url: str, *, publishes: bool) -> Sequence[Snippet]:
    """
    Snippets for each tool; ``url`` is the repository's address without a trailing slash.

    Those for publishing are left out unless the repository ``publishes``. Tools that refuse addresses without TLS are
    told to accept this one, if it is such an address.
    """
    parts = urlsplit(url)
    insecure = parts.scheme == "http"
    values = {"id": ID, "url": url, "host": parts.hostname or "", "realm": REALM}

    def entry(client: str, title: str, file: str, language: str, text: str, allowed: str = "") -> Snippet:
        filled = text.replace("{insecure}", allowed if insecure else "")
        for name, value in values.items():
            filled = filled.replace(f"{{{name}}}", value)
        return snippet(client, title, file, language, filled)

    def gradle(indent: int) -> str:
        return f"{' ' * indent}allowInsecureProtocol = true\n"  # Gradle 7 refuses http otherwise

    def kotlin(indent: int) -> str:
        return f"{' ' * indent}isAllowInsecureProtocol = true\n"

    settings = render(maven_settings(url, "USERNAME", "TOKEN"))
    sbt = ".withAllowInsecureProtocol(true)"
    read = [
        entry("maven", "Credentials and repository", "~/.m2/settings.xml", "xml", settings),
        entry("maven", "Repository of a project", "pom.xml", "xml", _POM),
        entry("gradle", "Gradle (Groovy)", "build.gradle", "groovy", _GRADLE_READ, gradle(8)),
        entry("gradle", "Gradle (Kotlin)", "build.gradle.kts", "kotlin", _GRADLE_READ, kotlin(8)),
        entry("sbt", "Resolve with sbt", "build.sbt", "scala", _SBT_READ, sbt),
        entry("ivy", "Resolve with Ivy", "ivysettings.xml", "xml", _IVY),
        entry("mill", "Resolve with Mill", "build.mill", "scala", _MILL),
    ]
    if not publishes:
        return read
    return [
        *read,
        entry("maven", "Deploy with Maven", "pom.xml", "xml", _DISTRIBUTION),
        entry("gradle", "Publish with Gradle (Groovy)", "build.gradle", "groovy", _GRADLE_GROOVY, gradle(12)),
        entry("gradle", "Publish with Gradle (Kotlin)", "build.gradle.kts", "kotlin", _GRADLE_KOTLIN, kotlin(12)),
        entry("gradle", "Credentials for publishing", "~/.gradle/gradle.properties", "properties", _GRADLE_PROPERTIES),
        entry("sbt", "Publish with sbt", "build.sbt", "scala", _SBT_PUBLISH, sbt),
        entry("ivy", "Publish with Ivy", "ivysettings.xml", "xml", _IVY_PUBLISH),
        entry("mill", "Publish with Mill", "", "sh", _MILL_PUBLISH),
        entry("curl", "Upload with curl", "", "sh", _CURL),
    ]


def install_snippets(name: str, version: str) -> Sequence[Snippet]:
    """How a project depends on an artifact, ``name`` being ``groupId:artifactId``."""
    group, _, artifact = name.partition(":")
    pom = "".join(
        f"  <{element}>{escape(value)}</{element}>\n"
        for element, value in (("groupId", group), ("artifactId", artifact), ("version", version))
    )
    return [
        snippet("maven", "Maven", "pom.xml", "xml", f"<dependency>\n{pom}</dependency>\n"),
        snippet("gradle", "Gradle", "build.gradle", "groovy", f'implementation("{name}:{version}")\n'),
        snippet("sbt", "sbt", "build.sbt", "scala", f'libraryDependencies += "{group}" % "{artifact}" % "{version}"\n'),
    ]
