"""SQLite behind ``ICatalog``. Queries run on reader connections, commands in batches on one writer thread."""
