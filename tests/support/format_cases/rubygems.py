"""The Ruby gem format."""

from __future__ import annotations

from tests.support.gems import make_gem

from .case import OCTETS, Case

RUBY = Case(
    format="ruby",
    put=lambda send, name, version: send("POST", "/api/v1/gems", make_gem(name, version), kind=OCTETS),
    document="/info/{name}",
    listed="{version} ",
    file="/gems/{name}-{version}.gem",
    beside=("/quick/Marshal.4.8/demo-1.1.0.gemspec.rz",),
    sent=lambda name, version: (f"{name}-{version}.gem", make_gem(name, version), {}),
    lock=lambda name, version, _: (
        "Gemfile.lock",
        f"GEM\n  remote: https://g.example/\n  specs:\n    {name} ({version})\n",
    ),
)
