"""Completion in PowerShell, which click does not have: the script, and what the program prints for it."""

from __future__ import annotations

import os
from typing import Final

from click.shell_completion import CompletionItem, ShellComplete, add_completion_class

# Words are handed over by lines, up to the one under the cursor. Without a candidate PowerShell completes paths.
_SCRIPT: Final = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = $commandAst.CommandElements |
        Where-Object { $_.Extent.StartOffset -lt $cursorPosition } |
        ForEach-Object {
            if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value }
            else { $_.Extent.Text }
        }
    $env:COMP_WORDS = $words -join "`n"
    $env:COMP_CWORD = $wordToComplete
    $env:%(complete_var)s = 'powershell_complete'
    try {
        & %(prog_name)s | Where-Object { $_ } | ForEach-Object {
            $value, $help = $_ -split "`t", 2
            if (-not $help) { $help = $value }
            [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $help)
        }
    } finally {
        Remove-Item Env:COMP_WORDS, Env:COMP_CWORD, Env:%(complete_var)s -ErrorAction SilentlyContinue
    }
}
"""


class PowerShellComplete(ShellComplete):
    """Completes lines of PowerShell 5.1 and later."""

    name = "powershell"
    source_template = _SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one under the cursor without the program, and what stands of that one."""
        words = os.environ.get("COMP_WORDS", "").splitlines()[1:]  # quotes are off already
        incomplete = os.environ.get("COMP_CWORD", "").strip("'\"")
        if incomplete and words and words[-1] == incomplete:
            words.pop()
        return words, incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """Return a line with a candidate and its help; an empty one for paths, which PowerShell completes itself."""
        return f"{item.value}\t{item.help or ''}" if item.type == "plain" else ""

    def complete(self) -> str:
        """Return the lines of all candidates."""
        return "\n".join(line for line in super().complete().split("\n") if line)


add_completion_class(PowerShellComplete)
