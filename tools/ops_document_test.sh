#!/bin/bash
# Usage: ops_document_test.sh MILLRACE GOLDEN_OPS DOCUMENT
#
# Holds docs/ops.md to the operations of this build and their golden cases.
set -eu
made=$(mktemp)
trap 'rm -f "$made"' EXIT
"$1" ops --golden "$2" -o "$made"
if ! diff "$3" "$made"; then
  echo "docs/ops.md is not up to date: millrace ops --golden tests/golden/ops.txt -o docs/ops.md" >&2
  exit 1
fi
