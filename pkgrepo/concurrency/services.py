"""Twisted's services with typed methods; every service of the project is one of these."""

from __future__ import annotations

from typing import Any

from twisted.application import service
from twisted.internet.defer import Deferred


class Service(service.Service):
    """A part of the server that starts and stops with its parent."""

    def privilegedStartService(self) -> None:
        """Prepare what needs the privileges that twistd gives up before ``startService``."""
        super().privilegedStartService()  # type: ignore[no-untyped-call]

    def startService(self) -> None:
        """Mark the service as running."""
        super().startService()  # type: ignore[no-untyped-call]

    def stopService(self) -> Deferred[Any] | None:
        """Mark the service as stopped; what is returned fires when it has stopped, None: at once."""
        super().stopService()  # type: ignore[no-untyped-call]
        return None


class MultiService(service.MultiService):
    """A service that starts and stops the services in it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def setName(self, name: str) -> None:
        """Set the name by which the parent finds it. :raises RuntimeError: it has a parent already"""
        super().setName(name)  # type: ignore[no-untyped-call]

    def setServiceParent(self, parent: Any) -> None:
        """Join a parent, and start if that runs."""
        super().setServiceParent(parent)  # type: ignore[no-untyped-call]

    def privilegedStartService(self) -> None:
        """Let each service in it prepare what needs privileges."""
        super().privilegedStartService()  # type: ignore[no-untyped-call]

    def startService(self) -> None:
        """Start the services in it, in their order."""
        super().startService()  # type: ignore[no-untyped-call]

    def stopService(self) -> Deferred[Any]:
        """Stop the services in it, the last one first; fires when all have stopped."""
        stopped: Deferred[Any] = super().stopService()  # type: ignore[no-untyped-call]
        return stopped
