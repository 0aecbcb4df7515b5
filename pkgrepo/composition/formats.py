"""The list of package formats."""

from __future__ import annotations

from pkgrepo.config import Config
from pkgrepo.formats.conda.format import conda
from pkgrepo.formats.container.format import container
from pkgrepo.formats.maven.format import maven
from pkgrepo.formats.npm.format import npm
from pkgrepo.formats.python.format import python
from pkgrepo.formats.rubygems.format import ruby
from pkgrepo.gateway.format import Format


def make_formats(config: Config) -> dict[str, Format]:
    """Every format of the server, by name. A new format is added here and nowhere else."""
    docker = container(
        service=config.container.service, ping=config.container.ping, trusted_keys=config.container.trusted_keys
    )
    formats = (conda(), docker, maven(), npm(), python(), ruby())
    return {each.name: each for each in formats}
