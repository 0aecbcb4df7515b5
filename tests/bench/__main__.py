"""The command behind ``bin/bench``: choose scenarios, run them, print tables."""

from __future__ import annotations

import argparse
import math
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from .arena import OURS, Arena, Pace, Result, Scenario, run
from .contestants.proxy import Source
from .contestants.server import CONTESTANTS, ROOT, Contestant
from .contestants.sizes import SCALED
from .reports.markdown import summarise, titles, write_reports
from .reports.tables import render, to_json
from .scenarios.groups import ALL, GROUPS, Group, group_of
from .soak import describe, describe_restarts, run_restarts, run_soak, soak_json

EVERYTHING = "all"
GROWTH = ("scale", "npm-publish-5000", "image-tags-page")  # what ``--scale`` means
LIMIT_MINUTES = 55.0  # of a run of everything; the scenario that runs by then may take some minutes more
CACHE = ROOT / ".cache" / "bench"


def main(arguments: Sequence[str]) -> int:
    """Run what the command line asks for; the exit status."""
    options = _parser().parse_args(arguments)
    if options.list:
        _list()
        return 0
    signal.signal(signal.SIGTERM, _leave)
    if options.soak:
        return _soak(options)
    if options.restarts:
        return _restarts(options.restarts)
    everything = options.all or EVERYTHING in options.scenario
    chosen = _everything() if everything else _chosen(_words(options))
    folder = options.out or (CACHE / "results" if options.all else None)
    limit = options.minutes or (LIMIT_MINUTES if everything else None)
    Source.mib = options.mib
    CACHE.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="run-", dir=CACHE))
    arena = Arena(contestants=_contestants(options.peers, options.releases), scratch=scratch, cache=CACHE / "files")
    results: list[Result] = []
    deadline = math.inf if limit is None else time.monotonic() + 60 * limit
    try:
        for scenario in chosen:
            pace = _pace(options, group_of(scenario) if everything else None)
            results.append(run(scenario, arena, pace, _say, deadline))
            if folder:
                write_reports(folder, results)
    finally:
        arena.clear()
        shutil.rmtree(scratch, ignore_errors=True)
    print(summarise(results, titles()) if options.markdown or options.all else render(results))
    if options.json:
        options.json.write_text(to_json(results))
    return 0


def _parser() -> argparse.ArgumentParser:
    groups = ", ".join(GROUPS)
    parser = argparse.ArgumentParser(prog="bin/bench", description="pkgrepo and its peers side by side, as ratios")
    parser.add_argument("scenario", nargs="*", help=f"a scenario or a group: {groups}, {EVERYTHING} (default: peers)")
    parser.add_argument("--list", action="store_true", help="say which scenarios there are")
    parser.add_argument("--all", action="store_true", help="run all; write tables, figures and pictures to files")
    parser.add_argument("--scale", action="store_true", help="measure the growth of a catalog")
    parser.add_argument("--releases", type=int, default=100_000, help="the largest one of these (default 100000)")
    parser.add_argument("--nodes", type=int, choices=(2,), help="measure so many nodes on PostgreSQL and a bucket")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="mixed requests at 70 %% of the highest rate")
    parser.add_argument("--restarts", type=int, metavar="REQUESTS", help="so many while workers are replaced")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where; without --all, write them too")
    parser.add_argument("--minutes", type=float, help=f"start no scenario after so many (all: {LIMIT_MINUTES})")
    parser.add_argument("--rounds", type=int, help="rounds; ratios are medians over them (default 3; all: by group)")
    parser.add_argument("--seconds", type=float, help="length of a round of small requests (default 4; all: by group)")
    parser.add_argument("--peers", help="the peers that take part, separated by commas; none for pkgrepo alone")
    parser.add_argument("--mib", type=int, default=1000, help="size of the image behind proxies (default 1000)")
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to a file")
    return parser


def _soak(options: argparse.Namespace) -> int:
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=CACHE) as scratch:
        soak = run_soak(options.soak, Path(scratch), _say)
    print(describe(soak))
    if options.json:
        options.json.write_text(soak_json(soak))
    return 0 if all(soak.verdicts.values()) else 1


def _restarts(requests: int) -> int:
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=CACHE) as scratch:
        found = run_restarts(requests, Path(scratch), _say)
    print(describe_restarts(found))
    return 0 if found.is_met else 1


def _pace(options: argparse.Namespace, group: Group | None) -> Pace:
    usual = Pace() if group is None else Pace(group.rounds, group.seconds)
    return Pace(options.rounds or usual.rounds, options.seconds or usual.seconds)


def _list() -> None:
    for name, group in GROUPS.items():
        print(f"{name}: {group.title}")
        for scenario in group.scenarios:
            print(f"  {scenario.name:16} {scenario.about}  [{', '.join(scenario.lineup)}]")


def _everything() -> list[Scenario]:
    return [scenario for group in GROUPS.values() if group.in_all for scenario in group.scenarios]


def _words(options: argparse.Namespace) -> Sequence[str]:
    usual = ["nodes"] if options.nodes else ["peers"]
    return options.scenario or (GROWTH if options.scale else usual)


def _chosen(words: Sequence[str]) -> list[Scenario]:
    groups = {name: group.scenarios for name, group in GROUPS.items()}
    groups |= {name: (scenario,) for name, scenario in ALL.items()}
    chosen: dict[str, Scenario] = {}
    for word in words:
        if word not in groups:
            sys.exit(f"there is no scenario {word!r}; --list names them all")
        chosen.update((scenario.name, scenario) for scenario in groups[word])
    return list(chosen.values())


def _contestants(peers: str | None, releases: int) -> Mapping[str, type[Contestant]]:
    too_large = {made.name for made in SCALED if made.releases > releases}
    fitting = {name: made for name, made in CONTESTANTS.items() if name not in too_large}
    if peers is None:
        return fitting
    named = {each.strip() for each in peers.split(",") if each.strip()} - {"none"}
    unknown = named - CONTESTANTS.keys()
    if unknown:
        sys.exit(f"there is no peer {', '.join(sorted(unknown))}; there are {', '.join(CONTESTANTS)}")
    return {name: made for name, made in fitting.items() if name in named or name.startswith((OURS, "direct"))}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _leave(_number: int, _frame: FrameType | None) -> None:
    # As an exception it passes every "finally", which stop the servers and remove the folders.
    sys.exit(143)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
