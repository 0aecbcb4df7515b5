"""What is inside: the entries of archives, and what images are made of."""
