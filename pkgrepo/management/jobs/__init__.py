"""Background jobs and garbage collection."""
