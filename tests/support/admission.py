"""Write commands that tests call themselves are admitted like the server's own work."""

from __future__ import annotations

from pkgrepo.auth.permissions.admission import Road, admit_server
from pkgrepo.model import SYSTEM, Actor, Repository
from pkgrepo.model.admission import Admitted


def admitted(repository: Repository, actor: Actor = SYSTEM) -> Admitted:
    """An actor who may make anything visible in a repository."""
    return admit_server(Road.IMPORT, repository, actor)
