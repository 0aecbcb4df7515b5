"""
Limits of manifests and signatures.

They keep the processing of 1 MB of upload below one second of CPU time. A manifest over a limit is refused; a signature
over a limit is ignored.

=======================  =====================================================  ====================================
counted                  limit                                                  cost of one
=======================  =====================================================  ====================================
bytes of a manifest      4 MiB                                                  10 ns
its values               250,000                                                up to 0.3 us
its references           10,000                                                 3 us, and a row
its annotations, where   64 KiB                                                 repeated in lists
lists repeat them
tags of one request      100                                                    a row
a manifest with          256 KiB; 32 layers of it, of 1 MiB together; for      0.1 us a byte
signatures               4 signed manifests
signatures of one        16                                                     0.1 ms for each key
envelope
verifications for one    1,000                                                  0.1 ms
manifest
=======================  =====================================================  ====================================
"""

from __future__ import annotations

from typing import Final

MANIFEST_SIZE: Final = 4 * 1024 * 1024  # bytes; the least that the specification asks registries to accept
MOST_VALUES: Final = 250_000
MOST_REFERENCES: Final = 10_000
MOST_ANNOTATIONS: Final = 64 * 1024  # bytes of annotations that lists of referrers repeat
MOST_TAGS: Final = 100  # of one request

SIGNATURE_MANIFEST_SIZE: Final = 256 * 1024  # of a manifest with signatures; cosign's are below 4 KiB a signature
MOST_LAYERS: Final = 32  # of one manifest that are searched for signatures
SIGNATURE_LAYERS_SIZE: Final = 1024 * 1024  # bytes of these layers together
MOST_SUBJECTS: Final = 4  # manifests that the signatures of one push may sign; those of cosign sign one
MOST_SIGNATURES: Final = 16  # of one envelope that are verified
MOST_CHECKS: Final = 1000  # verifications for one manifest
