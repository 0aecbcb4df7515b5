"""Harmless gems of the shape of an incident, and the document of a gem server that has them; see L{Drilled}."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from typing import Final

from pkgrepo.proxy.incidents.making import SCRIPT, filler, tar_gz_of, tar_of
from pkgrepo.proxy.incidents.shapes import Drilled, Made, Published

from .index.info import HEAD
from .names import full_name
from .paths import gem_path


def make(name: str, published: Published) -> Made:
    """The gem of a version."""
    members = {f"lib/{name}.rb": filler(published, "#")}
    if "native_build" in published.inside:
        members["ext/extconf.rb"] = b"# does nothing\n"
    elif "install_script" in published.inside:
        members["lib/rubygems_plugin.rb"] = b"# does nothing\n"
    if "executable" in published.inside:
        members["bin/run"] = SCRIPT
    content = tar_of(
        {
            "metadata.gz": gzip.compress(_specification(name, published).encode(), mtime=0),
            "data.tar.gz": tar_gz_of(members),
        }
    )
    return Made(gem_path(full_name(name, published.version)), content)


def document(_name: str, found: Mapping[str, tuple[Published, Made]], _url: str) -> bytes:
    """The document ``/info`` of a compact index."""
    lines = [
        f"{published.version} {_needs(published)}|checksum:{hashlib.sha256(made.content).hexdigest()},"
        f"created_at:{published.at:%Y-%m-%dT%H:%M:%SZ}\n"
        for published, made in found.values()
    ]
    return HEAD + "".join(lines).encode()


def _needs(published: Published) -> str:
    return ",".join(f"{name}:{bound}" for name, bound in sorted(published.needs.items()))


def _specification(name: str, published: Published) -> str:
    extensions = "\n- ext/extconf.rb" if "native_build" in published.inside else " []"
    return f"""--- !ruby/object:Gem::Specification
name: {name}
version: !ruby/object:Gem::Version
  version: {published.version}
platform: ruby
authors:
- {published.publisher}
date: 1980-01-02 00:00:00.000000000 Z
dependencies: []
extensions:{extensions}
licenses:
- MIT
rubygems_version: 3.3.15
specification_version: 4
summary: A harmless gem of the shape of a published incident
"""


DRILLED: Final = Drilled(make=make, document=document, age_days=7)
