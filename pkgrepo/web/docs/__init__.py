"""The book of documentation, as pages of the console with the addresses of this server."""
