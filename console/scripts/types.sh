#!/bin/sh
# Writes the types of the API, made of its OpenAPI, to the file that is named; no server is needed for it.
set -eu
cd "$(dirname "$0")/.."
python=../.venv/bin/python
told=$(mktemp -d)
trap 'rm -rf "$told"' EXIT
"$python" -c 'import json, sys; from redrive.api.app import create_app
json.dump(create_app(None, reception=None, checks={}, told=None).openapi(), sys.stdout)' > "$told/openapi.json"
node_modules/.bin/openapi-typescript "$told/openapi.json" --output "$told/schema.d.ts" --alphabetize > /dev/null
cp "$told/schema.d.ts" "$1"
