"""What formats say of lock files: how they are read, and where a repository has what they name."""
