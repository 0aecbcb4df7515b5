"""Background jobs: the list, the page of each with its progress, and the forms that start them."""
