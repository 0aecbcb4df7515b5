"""Statistics of a repository: what it contains, how it is used, and its last garbage collection."""
