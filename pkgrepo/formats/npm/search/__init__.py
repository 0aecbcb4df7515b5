"""Search and lists of packages, from one row for each package that ``indexing`` writes when the package changes."""
