"""Where bytes and facts are kept: the blob stores, the catalog, and the threads that both block in."""
