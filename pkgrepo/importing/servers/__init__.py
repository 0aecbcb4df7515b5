"""Other servers whose own API knows more than the protocol of their clients tells; one module a kind."""
