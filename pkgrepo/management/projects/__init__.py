"""Projects, their members and the names that they own."""
