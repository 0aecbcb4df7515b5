"""The blob stores (bytes), the catalog (rows), the readable layout on the disk, and the thread pools for them."""
