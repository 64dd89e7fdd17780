#!/bin/bash
# Usage: tools/compile_commands.sh [BAZEL_OPTION]...
#
# Writes compile_commands.json for clangd and clang-tidy, from what Bazel would run. Needs jq.
# Build first: generated headers are read from bazel-out. Options go on to Bazel: --config=cuda.
# .cu.cc files are left out, as clang does not know nvcc's options.
set -euo pipefail
cd "$(dirname "$0")/.."

base=$(bazel info output_base 2>/dev/null)
bazel aquery --noshow_progress --output=jsonproto "$@" 'mnemonic("CppCompile", //...)' |
  # From the workspace root every path resolves but external/, which is in the output base.
  jq --arg root "$PWD" --arg base "$base" '
    [.actions[].arguments
     | map(select(startswith("-fno-canonical-system-headers") | not)
           | if startswith("external/") then $base + "/" + . else . end)
     | {directory: $root, file: .[index("-c") + 1], arguments: .}]' > compile_commands.json
