"""Set-up instructions for npm's clients."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from pkgrepo.repositories.snippets import TOKEN, Snippet, command, snippet


def snippets(url: str, *, publishes: bool) -> Sequence[Snippet]:
    """
    The snippets for each client; ``url`` is the repository's address without a slash at the end.

    Those for publishing are left out unless the repository ``publishes``.
    """
    registry = f"{url}/"
    key = f"//{urlsplit(url).netloc}{urlsplit(url).path}/"
    plain = url.startswith("http://")

    npmrc = f"registry={registry}\n{key}:_authToken={TOKEN}\n"
    yarnrc = f'npmRegistryServer: "{url}"\nnpmAuthToken: "{TOKEN}"\nnpmAlwaysAuth: true\n'
    # Without npmPublishRegistry yarn publishes a scope to its default registry, the public one.
    scoped = (
        f'npmScopes:\n  SCOPE:\n    npmRegistryServer: "{url}"\n    npmPublishRegistry: "{url}"\n'
        f'    npmAuthToken: "{TOKEN}"\n    npmAlwaysAuth: true\n'
    )
    # Without this yarn 4.18 installs only versions that are older than its npmMinimalAgeGate.
    scoped += 'npmPreapprovedPackages:\n  - "@SCOPE/*"\n'
    if plain:
        unsafe = f'unsafeHttpWhitelist:\n  - "{urlsplit(url).hostname}"\n'
        yarnrc, scoped = yarnrc + unsafe, scoped + unsafe
    publish = [
        snippet("npm", "Publish with npm", "", "sh", f"npm publish --registry {registry}\n"),
        snippet("pnpm", "Publish with pnpm", "", "sh", f"pnpm publish --registry {registry}\n"),
    ]
    return [
        snippet("npm", ".npmrc for npm, pnpm and yarn 1", ".npmrc", "ini", npmrc),
        snippet(
            "npm",
            "One scope only, for npm, pnpm, yarn 1 and bun",
            ".npmrc",
            "ini",
            f"@SCOPE:registry={registry}\n{key}:_authToken={TOKEN}\n",
        ),
        snippet("npm", "Log in", "", "sh", f"npm login --registry {registry}\n"),
        *(publish if publishes else ()),
        # Without always-auth yarn 1 sends no token for unscoped packages.
        snippet("yarn", ".npmrc for yarn 1 and a private repository", ".npmrc", "ini", f"{npmrc}always-auth=true\n"),
        snippet("yarn", ".yarnrc.yml for yarn 2 and later", ".yarnrc.yml", "yaml", yarnrc),
        snippet("yarn", "One scope only, for yarn 2 and later", ".yarnrc.yml", "yaml", scoped),
        snippet(
            "bun",
            "bunfig.toml",
            "bunfig.toml",
            "toml",
            f'[install]\nregistry = {{ url = "{registry}", token = "{TOKEN}" }}\n',
        ),
    ]


def install_snippets(url: str, name: str, version: str) -> Sequence[Snippet]:
    """How to install a version; ``url`` is the repository's address without a slash at the end."""
    wanted = f"{name}@{version}"
    return [
        command("npm", "npm", "install", wanted, "--registry", f"{url}/"),
        command("pnpm", "pnpm", "add", wanted, "--registry", f"{url}/"),
        command("yarn", "yarn", "add", wanted),
        command("bun", "bun", "add", wanted, "--registry", f"{url}/"),
    ]
