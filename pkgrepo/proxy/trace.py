"""The steps by which the resolver came to a result, recorded while it decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import Factory, define


@define
class Trace:
    """
    A list of steps, in the order in which they were made; each is an object for JSON.

    A step has ``step`` (what was done or decided) and, where they apply, ``repository``, ``route``, ``at_ms`` (when),
    ``why`` (a sentence) and figures. The steps that led to a stored answer are stored with it.
    """

    steps: list[Mapping[str, Any]] = Factory(list)

    def add(self, step: str, **details: Any) -> None:
        """Record a step; details that are None are left out."""
        self.steps.append({"step": step, **{key: value for key, value in details.items() if value is not None}})
