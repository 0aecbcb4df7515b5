"""Setup snippets for Ruby's tools, as the API shows them for a repository."""

from __future__ import annotations

from collections.abc import Sequence

from pkgrepo.repositories.snippets import TOKEN, Snippet, command, snippet
from pkgrepo.tool_files.editing import render
from pkgrepo.tool_files.tools.ruby import gemrc


def snippets(url: str, *, publishes: bool) -> Sequence[Snippet]:
    """
    Snippets for each tool; ``url`` is the repository's address without a trailing slash.

    Those for publishing are left out unless the repository ``publishes``.
    """
    install = [
        snippet("bundler", "Gemfile", "Gemfile", "ruby", f'source "{url}/"\n\ngem "GEM"\n'),
        snippet("bundler", "Credentials for Bundler", "", "sh", f"bundle config set --local {url}/ token:{TOKEN}\n"),
        snippet("bundler", "Use as mirror", "", "sh", f"bundle config set --local mirror.SOURCE {url}/\n"),
        snippet("gem", "Install with gem", "", "sh", f"gem install GEM --clear-sources --source {url}/\n"),
        snippet("gem", ".gemrc", "~/.gemrc", "yaml", render(gemrc(url, TOKEN))),
    ]
    if not publishes:
        return install
    return [
        *install,
        snippet("gem", "Sign in with gem", "", "sh", f"RUBYGEMS_HOST={url} gem signin\n"),
        snippet(
            "gem", "Publish with gem", "", "sh", f"GEM_HOST_API_KEY={TOKEN} gem push --host {url} GEM-VERSION.gem\n"
        ),
        snippet("gem", "Yank with gem", "", "sh", f"GEM_HOST_API_KEY={TOKEN} gem yank --host {url} GEM -v VERSION\n"),
        snippet(
            "curl",
            "Publish with curl",
            "",
            "sh",
            f"curl -H 'Authorization: {TOKEN}' --data-binary @GEM-VERSION.gem {url}/api/v1/gems\n",
        ),
    ]


def install_snippets(url: str, name: str, version: str) -> Sequence[Snippet]:
    """How to install a version; ``url`` is the repository's address without a slash at the end."""
    number, _, platform = version.partition("-")
    chosen = ["--platform", platform] if platform else []
    return [
        command("gem", "gem", "install", name, "-v", number, *chosen, "--clear-sources", "--source", f"{url}/"),
        snippet("bundler", "Gemfile", "Gemfile", "ruby", f'source "{url}/" do\n  gem "{name}", "{number}"\nend\n'),
    ]
