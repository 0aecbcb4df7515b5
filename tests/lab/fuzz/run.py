"""
Fuzz all targets in turn, then run the state machines, ask the API, and keep what is found.

Run it with ``bin/faults --fuzz [MINUTES] [--seed N] [--target NAME]...``. The
exit status is 1 if something was found. An input that was is a file below ``tests/data/fuzz`` then, with which the
tests fail until it is mended; an order of steps is printed as a test, and a request to
the API as it was sent.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from . import api, corpus, described
from .machines.run import machines, run_machines
from .rounds import Round, run_round
from .target import Target

# Where the readers are: the guide sees the branches of these rooms, which takes 20 ms for each module.
READERS = (
    "pkgrepo.archives",
    "pkgrepo.auth",
    "pkgrepo.formats",
    "pkgrepo.gateway.digest_fields",
    "pkgrepo.gateway.imported",
    "pkgrepo.gateway.mirrored",
    "pkgrepo.http.answering",
    "pkgrepo.http.reading",
    "pkgrepo.ldap",
    "pkgrepo.management.packages.statements",
    "pkgrepo.oidc",
    "pkgrepo.outbound",
    "pkgrepo.proxy.parts",
    "pkgrepo.repositories.advisories",
    "pkgrepo.repositories.semver",
    "pkgrepo.repositories.version_ranges",
    "pkgrepo.s3",
    "pkgrepo.sigstore",
    "pkgrepo.untrusted",
)


MACHINES, ASKING = 0.2, 0.1  # of the time
REQUESTS = 1_000_000  # to the API, at most
API = "api"  # the name of the management API among targets


def _guide() -> ModuleType | None:
    """The module ``atheris``, which sees what code an input reaches; None where it is not installed."""
    try:
        return importlib.import_module("atheris")
    except ImportError:
        return None


def _targets(guide: ModuleType | None) -> dict[str, Target]:
    """All targets; the readers are imported so that the guide sees their branches."""
    if guide is None:
        return dict(importlib.import_module("tests.lab.fuzz.targets").all_targets())
    with guide.instrument_imports(include=list(READERS), enable_loader_override=False):
        return dict(importlib.import_module("tests.lab.fuzz.targets").all_targets())


def run(targets: Sequence[Target], minutes: float, seed: int, guide: ModuleType | None = None) -> list[Round]:
    """Fuzz targets, each for its part of the time; findings are printed and kept at once."""
    rounds, each_s = [], minutes * 60 / max(1, len(targets))
    for target in targets:
        found = run_round(target, each_s, seed, guide)
        rounds.append(found)
        for finding in found.findings:
            print(f"FOUND {target.name}: {finding.why}\n  kept as {corpus.keep(finding)}", flush=True)
    return rounds


def _ask_api(seconds: float, seed: int) -> int:
    """Ask the management API for so long, in two ways. Returns the number of findings, which are printed."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        fuzzer = api.run(Path(folder), REQUESTS, seed, seconds / 2)
    print(f"api: {sum(fuzzer.counts.values())} requests, by status {dict(sorted(fuzzer.counts.items()))}")
    wrong = fuzzer.wrong
    if described.PROGRAM.exists():
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            wrong += described.run(Path(folder), seed, seconds / 2)
    else:
        print("left out: Schemathesis is not here; bin/test tests/clients installs it")
    for each in wrong:
        print(f"FOUND {API}: {each}", flush=True)
    return len(wrong)


def main(arguments: Sequence[str]) -> int:
    """Fuzz; 1 if something was found."""
    parser = argparse.ArgumentParser(prog="bin/faults --fuzz", description=__doc__)
    parser.add_argument("minutes", nargs="?", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--target", action="append", default=[], help="only targets and machines whose names begin so")
    given = parser.parse_args(arguments)
    guide = _guide()
    targets = [each for name, each in _targets(guide).items() if name.startswith(tuple(given.target or [""]))]
    chosen = tuple(given.target or [""])
    steps = [name for name in machines() if name.startswith(chosen)]
    inputs = given.minutes * (1 - MACHINES * bool(steps) - ASKING * API.startswith(chosen))
    seed = random.SystemRandom().randrange(2**31) if given.seed is None else given.seed
    guided = "guided by atheris" if guide else "without a guide (atheris)"
    print(f"seed {seed}, {len(targets)} targets, {len(steps)} machines, {guided}", flush=True)
    began = time.monotonic()
    rounds = run(targets, inputs, seed, guide)
    found = sum(len(each.findings) for each in rounds)
    for told in run_machines(given.minutes * MACHINES, chosen, seed):
        print(f"FOUND {told}", flush=True)
        found += 1
    if API.startswith(chosen):
        found += _ask_api(given.minutes * ASKING * 60, seed)
    print(f"{sum(each.tried for each in rounds)} inputs in {time.monotonic() - began:.0f} s, {found} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
