"""
Budgets of what pushes of images say.

Each keeps the inspection of 1 MB of upload below one second of processor time. What is over a budget of signatures is
no signature, and no error; of the rest it is refused.

=======================  =====================================================  ====================================
counted                  budget                                                 what one costs
=======================  =====================================================  ====================================
bytes of a manifest      4 MiB                                                  10 ns
its values               250,000                                                up to 0.3 us
its references           10,000                                                 3 us, and a row
its annotations, where   64 KiB                                                 repeated in lists
lists repeat them
tags of one request      100                                                    a row
a manifest with          256 KiB; 32 layers of it, of 1 MiB together; held      0.1 us a byte
signatures               against 4 images
signatures of one        16                                                     0.1 ms for each key
envelope
signatures of a          1,000                                                  0.1 ms
manifest held against
keys
=======================  =====================================================  ====================================
"""

from __future__ import annotations

from typing import Final

MANIFEST_SIZE: Final = 4 * 1024 * 1024  # bytes; what the specification asks registries to take at least
MOST_VALUES: Final = 250_000
MOST_REFERENCES: Final = 10_000
MOST_ANNOTATIONS: Final = 64 * 1024  # bytes of annotations that lists of referrers repeat
MOST_TAGS: Final = 100  # of one request

MANIFEST_BYTES: Final = 256 * 1024  # of a manifest with signatures; cosign's are below 4 KiB a signature
MOST_LAYERS: Final = 32  # of one manifest that are looked at
EVIDENCE_SIZE: Final = 1024 * 1024  # bytes of all its layers that are looked at
MOST_SUBJECTS: Final = 4  # images that the signatures of one push may be of; cosign's are of one
MOST_SIGNATURES: Final = 16  # of one envelope that are looked at
MOST_CHECKS: Final = 1000  # signatures of one manifest held against keys
