"""Setup snippets for Ruby's tools, as the API shows them for a repository."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

TOKEN = "<TOKEN>"  # noqa: S105 - a placeholder


def snippets(url: str, *, publishes: bool) -> Sequence[dict[str, str]]:
    """
    Snippets for each tool; ``url`` is the repository's address without a trailing slash.

    Those for publishing are left out unless the repository ``publishes``.
    """
    parts = urlsplit(url)
    authority = f"{parts.scheme}://token:{TOKEN}@{parts.netloc}{parts.path}/"

    def entry(client: str, title: str, file: str, language: str, text: str) -> dict[str, str]:
        return {"client": client, "title": title, "file": file, "language": language, "text": text}

    install = [
        entry("bundler", "Gemfile", "Gemfile", "ruby", f'source "{url}/"\n\ngem "GEM"\n'),
        entry("bundler", "Credentials for Bundler", "", "sh", f"bundle config set --local {url}/ token:{TOKEN}\n"),
        entry("bundler", "Use as mirror", "", "sh", f"bundle config set --local mirror.SOURCE {url}/\n"),
        entry("gem", "Install with gem", "", "sh", f"gem install GEM --clear-sources --source {url}/\n"),
        entry("gem", ".gemrc", "~/.gemrc", "yaml", f"---\n:sources:\n- {authority}\n"),
    ]
    if not publishes:
        return install
    return [
        *install,
        entry("gem", "Sign in with gem", "", "sh", f"RUBYGEMS_HOST={url} gem signin\n"),
        entry("gem", "Publish with gem", "", "sh", f"GEM_HOST_API_KEY={TOKEN} gem push --host {url} GEM-VERSION.gem\n"),
        entry("gem", "Yank with gem", "", "sh", f"GEM_HOST_API_KEY={TOKEN} gem yank --host {url} GEM -v VERSION\n"),
        entry(
            "curl",
            "Publish with curl",
            "",
            "sh",
            f"curl -H 'Authorization: {TOKEN}' --data-binary @GEM-VERSION.gem {url}/api/v1/gems\n",
        ),
    ]
