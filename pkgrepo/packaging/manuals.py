"""Manual pages and completions of shells, made of the commands."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import click
from click.shell_completion import get_completion_class

from pkgrepo.cli import main
from pkgrepo.commands.setup import PROGRAM, VARIABLE

_VERBATIM = ("\b", r"\b")  # click's mark of a paragraph that is not wrapped
_COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/pkgrepo",
    "zsh": "usr/share/zsh/vendor-completions/_pkgrepo",
    "fish": "usr/share/fish/vendor_completions.d/pkgrepo.fish",
}


def make_manuals(version: str) -> dict[str, bytes]:
    """The files by their path below /: a page in section 1 for each command, and a script for each shell."""
    context = click.Context(main, info_name=PROGRAM)
    found = {
        f"usr/share/man/man1/{name}.1.gz": gzip.compress(text.encode(), mtime=0)
        for name, text in _pages(main, context, version)
    }
    for shell, place in _COMPLETIONS.items():
        kind = get_completion_class(shell)
        assert kind is not None, "click has these three"
        found[place] = kind(main, {}, PROGRAM, VARIABLE).source().encode()
    return found


def _pages(command: click.Command, context: click.Context, version: str) -> Iterator[tuple[str, str]]:
    """The pages of a command and of everything in it, by their names (pkgrepo-repo-create)."""
    yield context.command_path.replace(" ", "-"), "\n".join(_page(command, context, version)) + "\n"
    for name, inner in _inner(command, context):
        yield from _pages(inner, click.Context(inner, parent=context, info_name=name), version)


def _inner(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield name, inner


def _page(command: click.Command, context: click.Context, version: str) -> Iterator[str]:
    """Lines of roff, as man(7) has them."""
    path = context.command_path
    pieces = " ".join(command.collect_usage_pieces(context))
    paragraphs = [each.strip() for each in (command.help or "").split("\n\n") if each.strip()]
    first = " ".join(paragraphs[0].split()).rstrip(".") if paragraphs else path
    yield f'.TH "{path.replace(" ", "-").upper()}" 1 "" "pkgrepo {version}" "pkgrepo"'
    yield f".SH NAME\n{path.replace(' ', '-')} \\- {_escape(first)}"
    yield f".SH SYNOPSIS\n.B {path}\n{_escape(pieces)}"
    yield ".SH DESCRIPTION"
    for each in paragraphs:
        yield from _paragraph(each)
    records = [each.get_help_record(context) for each in command.params]
    shown = [each for each in records if each is not None]
    if shown:
        yield ".SH OPTIONS"
    for option, meaning in shown:
        yield f".TP\n\\fB{_escape(option)}\\fR\n{_escape(meaning)}"
    inner = [*_inner(command, context)]
    if inner:
        yield ".SH COMMANDS"
    for name, below in inner:
        yield f".TP\n\\fB{path.replace(' ', '-')}-{name}\\fR(1)\n{_escape(below.get_short_help_str(limit=200))}"
    if context.parent is not None:
        yield f".SH SEE ALSO\n\\fB{context.parent.command_path.replace(' ', '-')}\\fR(1)"


def _paragraph(text: str) -> Iterator[str]:
    for mark in _VERBATIM:
        if text.startswith(mark):
            lines = text.removeprefix(mark).strip().splitlines()
            yield "\n".join([".PP", ".nf", *(_escape(line) for line in lines), ".fi"])
            return
    yield f".PP\n{_escape(' '.join(text.split()))}"


def _escape(text: str) -> str:
    """Text for roff: backslashes and dashes are themselves, and no line is a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in escaped.splitlines())
