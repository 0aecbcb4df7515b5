"""A listener for the progress of long work that ignores it."""


class NoProgress:
    """Ignores all progress."""

    def begin(self, label: str, total: int) -> None:
        """Do nothing."""

    def step(self, count: int = 1) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""
