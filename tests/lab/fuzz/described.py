"""
The management API as Schemathesis asks it: it makes requests of the OpenAPI document by itself, as each kind of caller.

Other than L{ApiFuzzer} it knows nothing of this server but the names of what is there; see https://schemathesis.io.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.support.server_process import ROOT, clean_environment

from .api import ADMIN, CALLERS, OTHER, ApiFuzzer, serving, traceback_of

PROGRAM: Final = ROOT / ".cache" / "clients" / "schemathesis" / "bin" / "schemathesis"  # bin/test installs it
ANONYMOUS: Final = "anonymous"
# Requests by which the server would ask others, at addresses that nobody chose, and the list of events, which does not
# end; what a caller does to the own account would end the run for all that follow.
LEFT_OUT: Final = r"^/(events|storage|import|user/me|system/hosts)|/(webhooks|publishers|mirror|replication|config)"
# Not asked for: that what fits the document is taken, since names have to be those of something.
CHECKS: Final = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
)


def ask(url: str, caller: str, folder: Path, seed: int, options: Sequence[str]) -> Iterator[str]:
    """
    Ask a server as a caller; what Schemathesis tells if something is wrong.

    ``options`` say for how long, see ``schemathesis run --help``. It works in ``folder``.
    """
    fuzzer = ApiFuzzer(url, seed)
    fuzzer.prepare()  # requests of callers before may have removed something
    names = {f"path.{name}": known for name, known in fuzzer.known.items() if name != "username"}
    others = [each for each in CALLERS if each != caller]
    lines = (f"{json.dumps(name)} = {json.dumps(known)}" for name, known in {**names, "path.id": others}.items())
    (folder / "schemathesis.toml").write_text("\n".join(["[parameters]", *lines, ""]))
    command = [str(PROGRAM), "run", f"{url}/api/openapi.json", "--origin", url]
    command += ["--checks", ",".join(CHECKS), "--exclude-path-regex", LEFT_OUT, "--warnings", "off"]
    command += ["--continue-on-failure", "--no-shrink", "--seed", str(seed), *options]
    if caller != ANONYMOUS:
        command += ["--auth", f"{caller}:{ADMIN[1] if caller == ADMIN[0] else OTHER}"]
    environment = clean_environment(NO_COLOR="1", COLUMNS="120")
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        yield f"{caller}: {done.stdout[-20_000:]}{done.stderr[-2000:]}"


def run(folder: Path, seed: int, seconds: float) -> list[str]:
    """Ask a server of its own as each caller in turn, for so long; what is wrong."""
    callers = (ANONYMOUS, *CALLERS)
    options = ["--phases", "coverage,fuzzing", "--max-time", str(max(1, round(seconds / len(callers))))]
    with serving(folder) as server:
        found = [each for caller in callers for each in ask(server.url, caller, folder, seed, options)]
        return [*found, *traceback_of(server)]
