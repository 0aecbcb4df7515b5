cat >repositories.toml <<'END'
[[repositories]]
storage = "main"
name = "py"
format = "python"
description = "our wheels"
END
make_package wheel demo 1.1
#: next 1
pkgrepo repo apply -f repositories.toml | grep "1 unchanged"
#: block
