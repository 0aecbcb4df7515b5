"""gem and Bundler."""

from __future__ import annotations

from pkgrepo.tool_files.values import Entry, Item, Setting, Syntax, ToolFile


def gemrc(url: str, token: str, *, publishes: bool = False) -> ToolFile:
    """``.gemrc``: the first source, and where ``gem push`` goes."""
    scheme, _, rest = url.partition("://")
    authority = f"{scheme}://token:{token}@{rest}/" if token else f"{url}/"
    entries: list[Entry] = [Item((":sources",), authority, first=True)]
    if publishes:
        entries.append(Setting(("push",), f"--host {url}"))
    return ToolFile(".gemrc", Syntax.YAML, tuple(entries), private=bool(token))


def credentials(url: str, token: str) -> ToolFile:
    """``credentials`` of gem: the key for an address; gem refuses the file if others can read it."""
    return ToolFile("gem/credentials", Syntax.YAML, (Setting((url,), token),), private=True)


def bundle_config(url: str, token: str) -> ToolFile:
    """``config`` of Bundler: the credentials for a source, by its address in the form of a variable."""
    name = f"{url}/".replace(".", "__").replace("-", "___").upper()
    return ToolFile("bundle/config", Syntax.YAML, (Setting((f"BUNDLE_{name}",), f"token:{token}"),), private=True)
