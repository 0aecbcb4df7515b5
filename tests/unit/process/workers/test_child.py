"""What a master does with the output of its workers."""

from __future__ import annotations

import io

from pkgrepo.process.workers.child import LONGEST_LINE, Lines, Outputs


def test_lines_are_passed_on_whole() -> None:
    written: list[bytes] = []
    lines = Lines(written.append)
    for data in (b"a", b"b\nc", b"\nd\ne", b"f"):
        lines.add(data)
    assert b"".join(written) == b"ab\nc\nd\n"
    assert all(each.endswith(b"\n") for each in written)
    lines.end()
    assert b"".join(written) == b"ab\nc\nd\nef\n"
    lines.end()
    assert b"".join(written) == b"ab\nc\nd\nef\n"


def test_a_line_without_an_end_is_bounded() -> None:
    written: list[bytes] = []
    lines = Lines(written.append)
    for _ in range(3):
        lines.add(b"x" * LONGEST_LINE)
    assert sum(map(len, written)) >= 2 * LONGEST_LINE


def test_the_log_and_what_is_printed_go_to_their_files() -> None:
    printed, logged = io.BytesIO(), io.StringIO()
    outputs = Outputs(printed, logged)
    outputs.print(b"a request\n")
    outputs.log("an event: é\n".encode())
    assert (printed.getvalue(), logged.getvalue()) == (b"a request\n", "an event: é\n")
