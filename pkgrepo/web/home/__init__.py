"""The first page, with the list of repositories, and the search over all of them."""
