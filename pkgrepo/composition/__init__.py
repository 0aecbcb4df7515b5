"""The larger parts of a server, put together from the configuration; ``pkgrepo.assembly`` joins them."""
