"""The simple index out: fragments in the catalog -> project pages, the list of projects, JSON metadata."""
