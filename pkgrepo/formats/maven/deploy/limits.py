"""Limits of deployments."""

from __future__ import annotations

from typing import Final

MOST_FILES: Final = 10_000  # of one deployment, without checksums; one transaction publishes them, with 0.3 s of CPU
MOST_OPEN: Final = 50  # deployments of one user in one repository that have not ended
OPEN_UPLOADS: Final = 4  # their sizes together, as a multiple of the largest upload
AT_ONCE: Final = 2  # deployments that one process validates at the same time; the others wait for their turn
SIGNATURE_SIZE: Final = 1024 * 1024  # bytes; a bundle of sigstore has some ten KiB
LONGEST_NAME: Final = 200  # characters of a deployment's name
SHOWN_COMPONENTS: Final = 1000  # in the status of a deployment
