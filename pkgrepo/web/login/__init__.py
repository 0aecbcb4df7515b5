"""Log in, log out, and the page that makes the first admin."""
