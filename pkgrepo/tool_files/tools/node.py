"""npm, pnpm, yarn and bun."""

from __future__ import annotations

from urllib.parse import urlsplit

from pkgrepo.tool_files.values import Entry, Item, Setting, Syntax, ToolFile


def npmrc(url: str, token: str, *, scope: str = "", always: bool = False) -> ToolFile:
    """
    ``.npmrc`` of npm, pnpm and yarn 1 for a repository, or for the packages of a ``scope`` such as ``@acme``.

    ``always`` makes yarn 1 send the token for unscoped packages, too.
    """
    key = f"//{urlsplit(url).netloc}{urlsplit(url).path}/:_authToken"
    entries = [Setting((f"{scope}:registry" if scope else "registry",), f"{url}/")]
    if token:
        entries.append(Setting((key,), token))
    if always and token:
        entries.append(Setting(("always-auth",), value=True))
    return ToolFile(".npmrc", Syntax.LINES, tuple(entries), private=bool(token))


def yarnrc(url: str, token: str) -> ToolFile:
    """``.yarnrc.yml`` of yarn 2 and later, which allows an address without TLS only by name."""
    entries: list[Entry] = [Setting(("npmRegistryServer",), url)]
    if token:
        entries += [Setting(("npmAuthToken",), token), Setting(("npmAlwaysAuth",), value=True)]
    if url.startswith("http://"):
        entries.append(Item(("unsafeHttpWhitelist",), urlsplit(url).hostname or ""))
    return ToolFile(".yarnrc.yml", Syntax.YAML, tuple(entries), private=bool(token))


def scoped_yarnrc(url: str, token: str, scope: str) -> ToolFile:
    """The same for the packages of a ``scope`` such as ``@acme``, which are published there, too."""
    place = ("npmScopes", scope.removeprefix("@"))
    # Without npmPublishRegistry yarn publishes a scope to its default registry, the public one.
    entries: list[Entry] = [Setting((*place, "npmRegistryServer"), url), Setting((*place, "npmPublishRegistry"), url)]
    if token:
        entries += [Setting((*place, "npmAuthToken"), token), Setting((*place, "npmAlwaysAuth"), value=True)]
    # Without this yarn 4.18 installs only versions that are older than its npmMinimalAgeGate.
    entries.append(Item(("npmPreapprovedPackages",), f"@{place[1]}/*"))
    if url.startswith("http://"):
        entries.append(Item(("unsafeHttpWhitelist",), urlsplit(url).hostname or ""))
    return ToolFile(".yarnrc.yml", Syntax.YAML, tuple(entries), private=bool(token))
