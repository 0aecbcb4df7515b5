"""Whether an identity may do something: pure rules over what the catalog says of it, behind one authorizer."""
