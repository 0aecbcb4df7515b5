"""``pkgrepo deploy``: a folder in the Maven layout -> one bundle -> a server, which publishes all of it or nothing."""
