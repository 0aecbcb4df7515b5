"""SQLite behind ``ICatalog``: connections, the writer thread and its queue, the schema and its migrations."""
