"""Commands on the data folder of a server, on its machine; those by its API are in the package ``client``."""
