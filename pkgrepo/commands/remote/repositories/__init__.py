"""``pkgrepo repo`` and the storages behind repositories: list, show, create, change, delete, and apply from a file."""
