"""The page of all commands in the book, made of their help. A test compares it with ``pkgrepo/docs/commands.md``."""

from __future__ import annotations

from collections.abc import Container, Iterator

import click

VERBATIM = ("\b", r"\b")  # click's mark, also as raw docstrings have it
_INTRODUCTION = """\
# All commands

Look up a command and its options; `pkgrepo COMMAND --help` prints the same. [The command line](command-line.md)
explains how to log in and what scripts rely on.
"""
# Options of every command that talks to a server, which are described once.
_COMMON = frozenset({"profile", "url", "token_file", "ca_file", "as_json", "help"})
_COMMON_TEXT = """\
Commands that talk to a server take `--profile`, `--url`, `--token-file` and `--ca-file`, and most of them `--json`,
which prints the records of the API.
"""


def commands_page(main: click.Group, without: Container[str] = ()) -> str:
    """The page of a group and everything in it, in Markdown, ``without`` commands of these names."""
    context = click.Context(main, info_name="pkgrepo")
    return "\n".join([_INTRODUCTION, _COMMON_TEXT, *_group(main, context, without)]).rstrip() + "\n"


def _group(group: click.Group, context: click.Context, without: Container[str]) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden or name in without:
            continue
        inner = click.Context(command, parent=context, info_name=name)
        if isinstance(command, click.Group):
            yield from _group(command, inner, without)
        else:
            yield from _command(command, inner)


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    pieces = " ".join(each for each in command.collect_usage_pieces(context) if each != "[OPTIONS]")
    yield f"## {context.command_path.removeprefix('pkgrepo ')}\n\n`{context.command_path} {pieces}`".replace(" `", "`")
    yield f"\n{_text(command.help or '')}\n"
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    shown = [each for each in options if each.name not in _COMMON]
    if shown:
        yield "| option | meaning |\n| --- | --- |"
        for each in shown:
            record = each.get_help_record(context)
            if record is not None:
                yield f"| `{record[0]}` | {_text(record[1]).replace('|', chr(92) + '|')} |"
        yield ""


def _text(text: str) -> str:
    """Help text as paragraphs. Lines that click does not wrap are code; what is in angle brackets is no HTML."""
    return "\n\n".join(_paragraph(each.strip()) for each in text.split("\n\n"))


def _paragraph(text: str) -> str:
    for mark in VERBATIM:
        if text.startswith(mark):
            return "\n".join(["```", *(line.strip() for line in text.removeprefix(mark).strip().splitlines()), "```"])
    return " ".join(text.split()).replace("<", "&lt;")
