"""What must hold of a server in the end, besides that nothing is lost; checkers tell what is wrong in sentences."""
