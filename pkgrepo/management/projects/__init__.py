"""Projects, their members, and the package names that they own."""
