"""Set-up instructions for npm's clients."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

TOKEN = "<TOKEN>"  # noqa: S105 - a placeholder


def snippets(url: str, *, publishes: bool) -> Sequence[dict[str, str]]:
    """
    The snippets for each client; ``url`` is the repository's address without a slash at the end.

    Those for publishing are left out unless the repository ``publishes``.
    """
    registry = f"{url}/"
    key = f"//{urlsplit(url).netloc}{urlsplit(url).path}/"
    plain = url.startswith("http://")

    def entry(client: str, title: str, file: str, language: str, text: str) -> dict[str, str]:
        return {"client": client, "title": title, "file": file, "language": language, "text": text}

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
        entry("npm", "Publish with npm", "", "sh", f"npm publish --registry {registry}\n"),
        entry("pnpm", "Publish with pnpm", "", "sh", f"pnpm publish --registry {registry}\n"),
    ]
    return [
        entry("npm", ".npmrc for npm, pnpm and yarn 1", ".npmrc", "ini", npmrc),
        entry(
            "npm",
            "One scope only, for npm, pnpm, yarn 1 and bun",
            ".npmrc",
            "ini",
            f"@SCOPE:registry={registry}\n{key}:_authToken={TOKEN}\n",
        ),
        entry("npm", "Log in", "", "sh", f"npm login --registry {registry}\n"),
        *(publish if publishes else ()),
        # Without always-auth yarn 1 sends no token for unscoped packages.
        entry("yarn", ".npmrc for yarn 1 and a private repository", ".npmrc", "ini", f"{npmrc}always-auth=true\n"),
        entry("yarn", ".yarnrc.yml for yarn 2 and later", ".yarnrc.yml", "yaml", yarnrc),
        entry("yarn", "One scope only, for yarn 2 and later", ".yarnrc.yml", "yaml", scoped),
        entry(
            "bun",
            "bunfig.toml",
            "bunfig.toml",
            "toml",
            f'[install]\nregistry = {{ url = "{registry}", token = "{TOKEN}" }}\n',
        ),
    ]
