#: here <<'END' = <<END
#: here https://b.example/repositories/main/b = $R/repositories/main/there
#: here "username": "site-a", "password": "..." = "username": "admin", "password": "correct-horse-battery"
create there npm
#: block
#: block
#: block
