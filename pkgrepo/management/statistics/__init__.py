"""Statistics of a repository."""
