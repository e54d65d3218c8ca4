#!/usr/bin/env bash
# docs/json.md says what the documents hold: json_docs_test.sh GAR SOURCE_DIRECTORY
command -v python3 >/dev/null || exit 77
exec python3 -B "$(dirname "$0")/json_docs_test.py" "$1" "$2"
