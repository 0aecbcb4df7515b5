"""What every resource uses. A request passes the route table, then identity, permission and body, then its handler."""
