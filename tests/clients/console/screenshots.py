"""
Makes pictures of the main pages of the console: ``python -m tests.clients.console.screenshots FOLDER [PAGE...]``.

Each page is shown light and dark, 360 and 1,400 pixels wide, at a server with some content. A ``PAGE`` is a part of an
address; without any, all pages are shown.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.chromium import NARROW, WIDE, chromium
from tests.support.console_content import CONFIG, PAGES, fill
from tests.support.container_clients import ADMIN
from tests.support.http_client import HttpClient
from tests.support.server_process import running


def main(folder: Path, wanted: list[str]) -> None:
    """Write one PNG file for each page and look into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as place, running(Path(place), CONFIG) as server:
        pages = (*PAGES, fill(HttpClient(server.url, ADMIN), hostile=False))
        with chromium(server.url, Path(place, "profile")) as window:
            window.log_in(*ADMIN)
            for path in pages:
                if wanted and not any(part in path for part in wanted):
                    continue
                for dark, width in ((False, WIDE), (False, NARROW), (True, WIDE), (True, NARROW)):
                    window.look(dark=dark, width=width)
                    window.show(path)
                    name = re.sub(r"[0-9a-f-]{36}", "one", path).strip("/").replace("/", "-")
                    colours = "dark" if dark else "light"
                    window.picture(folder / f"{re.sub(r'[^a-z-]', '-', name)}-{colours}-{width}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
