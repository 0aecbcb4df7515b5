"""What commands need that talk to a server by HTTP: addresses, bodies of requests, and why a request failed."""
