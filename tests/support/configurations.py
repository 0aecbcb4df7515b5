"""Builds configurations of servers for tests, in TOML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pkgrepo.auth.tokens.text import hash_token

PRIVATE = 'visibility = "private"'


def hosted(format: str, *names: str, **others: str) -> str:
    """Return the sections of hosted repositories; ``others`` maps names to additional lines of their sections."""
    settings = dict.fromkeys(names, "") | others
    return "".join(
        f'[[bootstrap.repositories]]\nname = "{name}"\nformat = "{format}"\n{lines}\n'
        for name, lines in settings.items()
    )


def config(**parts: str) -> str:
    """Return the line that sets rules of a repository: ``config(policy="allow_overwrite = true")``."""
    rules = "".join(f", {name} = {{ {rules} }}" for name, rules in parts.items())
    return f'config = {{ type = "Hosted"{rules} }}'


def proxy(format: str, name: str, *urls: str, lines: str = "", **settings: str) -> str:
    """
    Return the section of a proxy repository with routes to these URLs.

    ``settings`` are values in TOML; ``lines`` are further lines of the section.
    """
    routes = ", ".join(f'{{ url = "{url}" }}' for url in urls)
    rest = "".join(f", {key} = {value}" for key, value in settings.items())
    config = f'config = {{ type = "Proxy", proxy = {{ routes = [{routes}] }}{rest} }}'
    return hosted(format, **{name: f"{config}\n{lines}"})


def virtual(format: str, name: str, *members: str, publish_to: str | None = None, **settings: str) -> str:
    """Return the section of a virtual repository of these members (storage/name)."""
    rest = "" if publish_to is None else f', publish_to = "{publish_to}"'
    rest += "".join(f", {key} = {value}" for key, value in settings.items())
    return hosted(format, **{name: f'config = {{ type = "Virtual", members = {[*members]}{rest} }}'})


MOVING = config(push_rules="allow_tag_overwrite = true")  # tags may move


def trusting(key: str, *rules: str) -> str:
    """Return the line of a container repository that serves only images signed with this key."""
    return config(push_rules=", ".join(("require_content_trust = true", *rules)), trust=f"keys = ['''{key}''']")


def tokens(user: str, texts: Mapping[str, str], scopes: Mapping[str, tuple[str, Sequence[str], Sequence[str]]]) -> str:
    """Return the sections of a user's tokens; ``scopes`` maps each token name to (repository, actions, packages)."""
    lines = []
    for name, (repository, actions, packages) in scopes.items():
        lines += [
            "[[bootstrap.tokens]]",
            f'name = "{name}"',
            f'user = "{user}"',
            f'hash = "{hash_token(texts[name]).hex()}"',
            f"packages = {packages}",
            f'repositories = [{{ repository = "{repository}", actions = {actions} }}]',
        ]
    return "\n".join(lines) + "\n"
