#: here PASSWORD = $PASSWORD
create mirror npm public --upstream "$R/repositories/main/origin/"
#: block
admin "$R/api/repository/main%2Fmirror/config/policy" | jq -e .minimum_release_age.days
