"""
Servers of the tests start and log people in for a third of the processor time.

Passwords are hashed with the lowest cost (a real hash takes 0.16 s of processor time, at the start of each server and
at each login), and the routes of all servers of a process are compiled once. Programs that begin with an interpreter of
their own, such as workers, are as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import argon2
import werkzeug.routing

FAST = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
_MADE = ("_parts", "_trace", "_converters", "arguments", "_build", "_build_unknown")
_compiled: dict[Any, dict[str, Any]] = {}


def quicken() -> None:
    """Apply this to the servers that this process and its forks start from now on."""
    from pkgrepo.auth.login import passwords

    passwords.PasswordHasher = lambda: FAST  # type: ignore[assignment,misc]
    werkzeug.routing.Rule.compile = _compile_once  # type: ignore[method-assign]


def compile_routes() -> None:
    """Compile the routes of the API and of the console, for forks of this process."""
    from pkgrepo.management.app import ManagementApp
    from pkgrepo.web.app import WebApp

    ManagementApp(MagicMock(), MagicMock()).branches()  # no handler is called
    WebApp(MagicMock(), MagicMock(), MagicMock()).branches()


def _compile_once(rule: Any, compile: Callable[[Any], None] = werkzeug.routing.Rule.compile) -> None:
    """Compile a route as an earlier server has compiled that of the same text, which takes 40 ms per server."""
    text = (rule.rule, rule.subdomain, rule.host, rule.merge_slashes)
    if text not in _compiled:
        compile(rule)
        _compiled[text] = {name: getattr(rule, name) for name in _MADE}
    vars(rule).update(_compiled[text])
