"""Maven and Gradle."""

from __future__ import annotations

from typing import Final
from xml.sax.saxutils import escape  # writes only

from pkgrepo.tool_files.values import Element, Syntax, ToolFile, Whole

ID: Final = "pkgrepo"  # by which a POM and settings.xml name the repository

_SERVER: Final = """\
<server>
  <id>{id}</id>
  <username>{user}</username>
  <password>{token}</password>
</server>
"""

_PROFILE: Final = """\
<profile>
  <id>{id}</id>
  <repositories>
    <repository>
      <id>{id}</id>
      <url>{url}</url>
      <releases><enabled>true</enabled></releases>
      <snapshots><enabled>true</enabled></snapshots>
    </repository>
  </repositories>
  <pluginRepositories>
    <pluginRepository>
      <id>{id}</id>
      <url>{url}</url>
    </pluginRepository>
  </pluginRepositories>
</profile>
"""

# A project that names a repository of its own has none of the settings, so that it gets this one, too.
_INIT: Final = """\
// pkgrepo setup: the repository {url} for all builds of this user
def pkgrepo = {{ handler ->
    handler.maven {{
        name = '{id}'
        url = '{url}'
{insecure}{credentials}    }}
}}
settingsEvaluated {{ settings ->
    def plugins = settings.pluginManagement.repositories
    if (plugins.empty) {{
        plugins.gradlePluginPortal()
    }}
    pkgrepo(plugins)
    pkgrepo(settings.dependencyResolutionManagement.repositories)
}}
allprojects {{
    afterEvaluate {{ project ->
        if (!project.repositories.empty) {{
            pkgrepo(project.repositories)
        }}
    }}
    plugins.withId('maven-publish') {{
        pkgrepo(publishing.repositories)
    }}
}}
"""
_INIT_CREDENTIALS: Final = """\
        credentials {{
            username = '{user}'
            password = '{token}'
        }}
"""


def maven_settings(url: str, user: str, token: str) -> ToolFile:
    """``settings.xml`` of Maven: a repository for all builds, and the credentials for this id."""
    values = {"id": ID, "url": escape(url), "user": escape(user), "token": escape(token)}
    entries = [Element("servers", _SERVER.format(**values))] if token else []
    entries += [
        Element("profiles", _PROFILE.format(**values)),
        Element("activeProfiles", f"<activeProfile>{ID}</activeProfile>\n"),
    ]
    return ToolFile("maven/settings.xml", Syntax.XML, tuple(entries), private=bool(token))


def gradle_init(url: str, user: str, token: str) -> ToolFile:
    """An init script of Gradle, which adds the repository to all builds, and to where they publish."""
    values = {"id": ID, "url": url, "user": user, "token": token}
    insecure = "        allowInsecureProtocol = true\n" if url.startswith("http://") else ""  # Gradle 7 refuses http
    credentials = _INIT_CREDENTIALS.format(**values) if token else ""
    text = _INIT.format(**values, insecure=insecure, credentials=credentials)
    return ToolFile("gradle/init.gradle", Syntax.WHOLE, (Whole(text),), private=bool(token))
