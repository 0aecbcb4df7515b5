"""The command behind ``bin/bench``: choose scenarios, run them, print tables."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from attrs import evolve

from . import (
    contestants_conda,
    contestants_console,
    contestants_container,
    contestants_maven,
    contestants_npm,
    contestants_proxy,
    contestants_python,
    contestants_rubygems,
    scenarios_conda,
    scenarios_console,
    scenarios_container,
    scenarios_large,
    scenarios_maven,
    scenarios_npm,
    scenarios_proxy,
    scenarios_python,
    scenarios_rubygems,
)
from .contestants import ROOT, Contestant
from .report import render, summarise, to_json
from .scenarios import OURS, Arena, Result, Scenario, run

CACHE = ROOT / ".cache" / "bench"
CONTESTANTS: Mapping[str, type[Contestant]] = {
    **contestants_python.CONTESTANTS,
    **contestants_npm.CONTESTANTS,
    **contestants_container.CONTESTANTS,
    **contestants_maven.CONTESTANTS,
    **contestants_proxy.CONTESTANTS,
    **contestants_rubygems.CONTESTANTS,
    **contestants_conda.CONTESTANTS,
    **contestants_console.CONTESTANTS,
}
GROUPS: Mapping[str, Sequence[Scenario]] = {
    "peers": scenarios_python.SCENARIOS,
    "npm": scenarios_npm.SCENARIOS,
    "containers": scenarios_container.SCENARIOS,
    "maven": scenarios_maven.SCENARIOS,
    "gems": scenarios_rubygems.SCENARIOS,
    "conda": scenarios_conda.SCENARIOS,
    "console": scenarios_console.SCENARIOS,
    "proxies": scenarios_proxy.SCENARIOS,
    "figures": scenarios_large.SCENARIOS,
}
ALL = {scenario.name: scenario for group in GROUPS.values() for scenario in group}


def main(arguments: Sequence[str]) -> int:
    """Run what the command line asks for; the exit status."""
    options = _parser().parse_args(arguments)
    if options.list:
        _list()
        return 0
    chosen = _chosen(options.scenario or ["peers"])
    contestants = _contestants(options.peers)
    contestants_proxy.Source.mib = options.mib
    signal.signal(signal.SIGTERM, _leave)
    CACHE.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="run-", dir=CACHE))
    arena = Arena(contestants=contestants, scratch=scratch, cache=CACHE / "files", seconds=options.seconds)
    results: list[Result] = []
    try:
        for scenario in chosen:
            lineup = tuple(name for name in scenario.lineup if name in contestants)
            if not lineup:
                _say(f"{scenario.name}: none of its contestants was chosen")
                continue
            results.append(run(evolve(scenario, lineup=lineup), arena, options.rounds, _say))
    finally:
        arena.clear()
        shutil.rmtree(scratch, ignore_errors=True)
    print(summarise(results) if options.markdown else render(results))
    if options.json:
        options.json.write_text(to_json(results))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bin/bench", description="pkgrepo and its peers side by side, as ratios")
    parser.add_argument("scenario", nargs="*", help=f"a scenario or a group: {', '.join(GROUPS)}, all (default: peers)")
    parser.add_argument("--list", action="store_true", help="say which scenarios there are")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; ratios are medians over them (default 3)")
    parser.add_argument("--seconds", type=float, default=4, help="length of a round of small requests (default 4)")
    parser.add_argument("--peers", help="the peers that take part, separated by commas; none for pkgrepo alone")
    parser.add_argument("--mib", type=int, default=1000, help="size of the image behind proxies (default 1000)")
    parser.add_argument("--markdown", action="store_true", help="print one table in Markdown")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to a file")
    return parser


def _list() -> None:
    for group, scenarios in GROUPS.items():
        print(f"{group}:")
        for scenario in scenarios:
            print(f"  {scenario.name:16} {scenario.about}  [{', '.join(scenario.lineup)}]")


def _chosen(words: Sequence[str]) -> list[Scenario]:
    chosen: dict[str, Scenario] = {}
    groups = {**GROUPS, "all": tuple(ALL.values()), **{name: (scenario,) for name, scenario in ALL.items()}}
    for word in words:
        if word not in groups:
            sys.exit(f"there is no scenario {word!r}; --list names them all")
        chosen.update((scenario.name, scenario) for scenario in groups[word])
    return list(chosen.values())


def _contestants(peers: str | None) -> Mapping[str, type[Contestant]]:
    if peers is None:
        return CONTESTANTS
    named = {each.strip() for each in peers.split(",") if each.strip()} - {"none"}
    unknown = named - CONTESTANTS.keys()
    if unknown:
        sys.exit(f"there is no peer {', '.join(sorted(unknown))}; there are {', '.join(CONTESTANTS)}")
    return {name: made for name, made in CONTESTANTS.items() if name in named or name.startswith((OURS, "direct"))}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _leave(_number: int, _frame: FrameType | None) -> None:
    # As an exception it passes every "finally", which stop the servers and remove the folders.
    sys.exit(143)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
