"""Work that outlives the request that began it."""
