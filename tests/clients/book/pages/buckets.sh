#: beside bucket
#: here admin:... = admin:$PASSWORD
#: here https://s3.example = '"$ENDPOINT"'
#: here "bucket":"packages" = "bucket":"'"$BUCKET"'"
#: here "access_key_id":"..." = "access_key_id":"'"$AWS_ACCESS_KEY_ID"'"
#: here "secret_access_key":"..." = "secret_access_key":"'"$AWS_SECRET_ACCESS_KEY"'"
BASE=$R
#: block
pkgrepo storage list | grep cloud
