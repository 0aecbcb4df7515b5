"""Collections of garbage and other upkeep while clients work: nothing that is acknowledged may notice them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from tests.support.first_publishes import REPOSITORIES

from .task import Task

# Pushes of images ask which blobs are there before they send a manifest, and rely on the answer for this time.
GRACE_S: Final = {"docker": 300}


class Collecting(Task):
    """What is acknowledged is in the ledgers of the writers and of the other jobs."""

    name: ClassVar = "upkeep"
    steps: ClassVar = {"collect": 5, "preview": 1, "rebuild": 2, "verify": 1}

    def prepare(self) -> None:
        """The repositories are those of the writers."""

    def collect(self) -> None:
        """Remove what nothing refers to, with no or a short time of grace."""
        format_ = self.rng.choice([*REPOSITORIES])
        body = {"grace_seconds": GRACE_S.get(format_, 0), "delete_untagged": False}
        self._ask("gc", format_, body)

    def preview(self) -> None:
        """What a collection would remove."""
        self._ask("gc", self.rng.choice([*REPOSITORIES]), {"grace_seconds": 0, "dry_run": True})

    def rebuild(self) -> None:
        """Make the documents of a repository anew."""
        self._ask("rebuild", self.rng.choice([*REPOSITORIES]), {})

    def verify(self) -> None:
        """Read all blobs of a repository."""
        self._ask("verify", self.rng.choice([*REPOSITORIES]), {})

    def _ask(self, what: str, format_: str, body: Mapping[str, object]) -> None:
        place = f"api/repository/main%2F{REPOSITORIES[format_]}/{what}?wait=2"
        answer = self.api().send("POST", place, json=body)
        # 409: one of before a fault holds its lease; 404: there is nothing to do of this kind for the format
        assert answer.status_code in (200, 202, 404, 409), f"POST {place}: {answer.status_code} {answer.text[:300]}"
        if answer.status_code == 200 and what in ("gc", "verify"):
            found = answer.json()
            problems = found.get("errors") or found.get("damaged") or found.get("missing")
            # What cannot be read while a disk fails is told: 500, since that is excused once a fault began.
            assert not problems, f"{what} of {format_}: 500 {str(found)[:400]}"
