"""``pkgrepo completion``: scripts by which a shell completes the command line."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

PROGRAM = "pkgrepo"
VARIABLE = "_PKGREPO_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    r"""
    Print a script that completes commands and options in a shell.

    \b
    bash:  pkgrepo completion bash > ~/.local/share/bash-completion/completions/pkgrepo
    zsh:   pkgrepo completion zsh > "${fpath[1]}/_pkgrepo"
    fish:  pkgrepo completion fish > ~/.config/fish/completions/pkgrepo.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click has these three"
    click.echo(kind(context.find_root().command, {}, PROGRAM, VARIABLE).source())
