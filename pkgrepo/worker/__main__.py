"""
Runs a worker: ``python -m pkgrepo.worker REACTOR OPTION... SOCKETS``.

``REACTOR`` is one of twistd's names, ``OPTION`` are those of ``twistd pkgrepo``, and ``SOCKETS`` is the number of
listening sockets. What the descriptors are is told in L{pkgrepo.process.workers.child}.
"""

from __future__ import annotations

import sys

from twisted.application.reactors import installReactor

if __name__ == "__main__":
    name, *given, sockets = sys.argv[1:]
    if name != "default":
        installReactor(name)  # before anything imports the default one
    from pkgrepo.worker.program import run

    sys.exit(run(given, int(sockets)))
