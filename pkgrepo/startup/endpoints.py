"""The addresses of ``server.listen``, as Twisted's server endpoints."""

from __future__ import annotations

from typing import Any

from twisted.internet.endpoints import serverFromString

BACKLOG = 1024  # connections; with Twisted's default of 50, clients with one connection per request saw timeouts


def endpoint_problem(description: str, reactor: Any) -> str | None:
    """Why an address cannot be parsed (such as a socket that systemd did not pass), or None."""
    try:
        serverFromString(reactor, description)
    except (AssertionError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        reason = str(error)
        if isinstance(error, LookupError) and description.startswith("systemd:"):
            reason = "no socket was passed, or one without a name (FileDescriptorName=, --fdname)"
        return f"server.listen: there is nothing to listen at for {description!r}: {reason}"
    return None


def with_backlog(description: str) -> str:
    """The endpoint with a listen backlog for bursts of new connections, unless it names one itself."""
    if description.startswith(("tcp:", "tcp6:", "unix:")) and "backlog=" not in description:
        return f"{description}:backlog={BACKLOG}"
    return description
