"""Search and lists over all packages of a repository."""
