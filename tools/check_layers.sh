#!/bin/bash
# Usage: tools/check_layers.sh [DIRECTORY]
#
# Holds the C++ sources to the layers (the table of docs/architecture.md): what each folder may
# include, that only core/base names threads, clocks, entropy and files, that nothing is decided by
# the preprocessor, and that files stay short. Prints `file:line: what (rule)` for each breach.
# Exit status: 0 none, 1 some, 2 wrong usage.
#
# Bazel's visibility says the same of targets; this says it of lines, and of system libraries.
set -eu

root=${1:-$(dirname "$0")/..}
cd "$root" 2>/dev/null || { echo "tools/check_layers.sh: no such directory: $root" >&2; exit 2; }

# Hidden folders and Bazel's output links hold no source of ours.
files() {
  find . \( -path './.?*' -o -name 'bazel-*' \) -prune -o \
    -type f \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.js' \) -print |
    sed 's#^\./##' | LC_ALL=C sort
}

read -r -d '' program <<'END' || true
# Which layer a path belongs to; "" when it has none.
function layer(path,   part) {
  split(path, part, "/")
  if (part[1] == "core") {
    return (part[1] "/" part[2]) in allowed ? part[1] "/" part[2] : ""
  }
  if (part[1] == "distributed" && part[2] == "strategy") return "distributed/strategy"
  return part[1] in allowed ? part[1] : ""
}

function breach(what, rule) {
  printf "%s:%d: %s (%s)\n", FILENAME, FNR, what, rule
  ++breaches
}

# The line without comments, and with each literal emptied. Block comments and raw strings may span
# lines: `closing` is the text that ends the one we are in.
function code_of(line,   out, at, c, rest, open, end) {
  out = ""
  comment = ""
  while (line != "") {
    if (closing != "") {
      at = index(line, closing)
      if (!at) return out
      line = substr(line, at + length(closing))
      closing = ""
      continue
    }
    at = match(line, /["'\/]/)
    if (!at) return out line
    out = out substr(line, 1, at - 1)
    c = substr(line, at, 1)
    rest = substr(line, at + 1)
    if (c == "/") {
      if (substr(rest, 1, 1) == "/") {
        comment = substr(rest, 2)
        return out
      }
      if (substr(rest, 1, 1) == "*") {
        closing = "*/"
        rest = substr(rest, 2)
        out = out " "
      } else {
        out = out "/"
      }
    } else if (c == "\"" && out ~ /(^|[^A-Za-z0-9_])(u8|[uUL])?R$/) {
      open = index(rest, "(")
      closing = ")" substr(rest, 1, open - 1) "\""
      rest = substr(rest, open + 1)
      out = out "\"\""
    } else if (c == "'" && out ~ /[0-9A-Fa-f]$/ && rest ~ /^[0-9A-Fa-f]/) {
      # A digit separator: 1'000.
    } else {
      # A literal ends at the next quote that no backslash escapes, or with the line.
      while ((end = match(rest, /["'\\]/)) && substr(rest, end, 1) != c) {
        rest = substr(rest, end + (substr(rest, end, 1) == "\\" ? 2 : 1))
      }
      rest = end ? substr(rest, end + 1) : ""
      out = out c c
    }
    line = rest
  }
  return out
}

function check_include(line,   path, target, permitted, i, n) {
  path = line
  sub(/^[ \t]*#[ \t]*include[ \t]*["<]/, "", path)
  sub(/[">].*/, "", path)

  if (path ~ /(^|\/)\.\.?\//) breach("includes " path, "an include path starts at the root")
  if (here == "") return

  if (path ~ /^(core|ops|kernels|graph_opt|distributed|python_free_api|tools|tests)\//) {
    target = layer(path)
    permitted = target != "" && target == here
    n = split(allowed[here], names, " ")
    for (i = 1; i <= n; ++i) {
      if (names[i] == "*" || names[i] == target) permitted = 1
      # What may include a layer may include its parts.
      if (names[i] "/strategy" == target) permitted = 1
    }
    if (here ~ /^distributed/ && target ~ /^distributed/) permitted = 1
    if (!permitted) breach("includes " path, here " may include only" described[here])
  } else if (here == "core/base" &&
             path ~ /^(google\/|grpc|hwy\/|nlohmann\/|oneapi\/|dnnl|gtest\/|gmock\/|benchmark\/|zlib\.h|omp\.h)/) {
    breach("includes " path, "core/base has std and Abseil only")
  }

  if (privileged) return
  if ((path ~ /^grpc(pp|\+\+)?\// || path ~ /\.grpc\.pb\.h$/) && FILENAME !~ /^distributed\/grpc\//) {
    breach("includes " path, "only distributed/grpc knows gRPC")
  } else if ((path ~ /\.pb\.h$/ || path ~ /^google\/protobuf\//) && !knows_protobuf) {
    breach("includes " path, "protobuf stays at the border")
  }
  if (path ~ /^(cuda|cublas|cudnn|cufft|curand|cusolver|cusparse|nccl|nvml|nvtx|cub\/|thrust\/|device_launch_parameters\.h|vector_types\.h)/ &&
      FILENAME !~ /^core\/device\/cuda/ && FILENAME !~ /^kernels\/cuda\//) {
    breach("includes " path, "only core/device/cuda* and kernels/cuda know CUDA")
  }
}

# An include guard is a file's first directive, and defines what it tests. Highway compiles a file
# once for each instruction set: its switches are HWY_*, and a header that takes part has a toggle
# instead of a guard.
function check_conditional(line, number,   name) {
  if (line ~ /HWY_/) {
    if (line ~ /HWY_TARGET_TOGGLE/) toggle = 1
    return
  }
  if (toggle && line ~ /ifdef[ \t]+[A-Z0-9_]+_H_/) return
  if (number == 1 && FILENAME ~ /\.h$/ && line ~ /ifndef/) {
    guard = line
    sub(/^[ \t]*#[ \t]*ifndef[ \t]+/, "", guard)
    sub(/[ \t].*/, "", guard)
    guard_line = FNR
    return
  }
  breach("preprocessor conditional", "another file or an interface instead of a condition")
}

function finish_file() {
  if (guard != "") {
    printf "%s:%d: preprocessor conditional (%s)\n", file, guard_line,
        "another file or an interface instead of a condition"
    ++breaches
  }
}

BEGIN {
  allowed["core/base"] = ""
  allowed["core/framework"] = "core/base"
  allowed["core/io"] = "core/framework core/base"
  allowed["core/device"] = "core/framework core/base"
  allowed["core/graph"] = "core/framework core/base"
  allowed["core/runtime"] = "core/graph core/io core/framework core/base"
  allowed["ops"] = "core/graph core/framework core/base"
  allowed["kernels"] = "core/device core/io core/framework core/base"
  allowed["graph_opt"] = "ops core/graph core/framework core/base"
  allowed["distributed"] = "core/runtime ops core/graph core/io core/framework core/base"
  allowed["distributed/strategy"] = "graph_opt " allowed["distributed"]
  allowed["python_free_api"] = "distributed graph_opt kernels ops core/runtime core/device " \
      "core/graph core/io core/framework core/base"
  allowed["tools"] = "*"
  allowed["tests"] = "*"
  for (name in allowed) described[name] = " itself" (allowed[name] == "" ? "" : ", ") allowed[name]

  # What only core/base may name: a pattern, and the rule that it breaks.
  pattern["thread"] = "(^|[^A-Za-z0-9_])(std::j?thread|std::async|pthread_create)([^A-Za-z0-9_]|$)"
  rule["thread"] = "threads come from core/base"
  pattern["sleep"] = "(^|[^A-Za-z0-9_])(sleep_for|sleep_until|usleep|nanosleep|clock_nanosleep|absl::SleepFor)([^A-Za-z0-9_]|$)|(^|[^A-Za-z0-9_.>])sleep[ ]*[(]"
  rule["sleep"] = "nothing sleeps outside core/base; wait for an event or use a timer"
  pattern["clock"] = "(steady_clock|system_clock|high_resolution_clock)::now|(^|[^A-Za-z0-9_])(absl::Now|absl::GetCurrentTimeNanos|clock_gettime|gettimeofday)([^A-Za-z0-9_]|$)"
  rule["clock"] = "the clock is injected, from core/base"
  pattern["wait"] = "(^|[^A-Za-z0-9_])condition_variable(_any)?([^A-Za-z0-9_]|$)"
  rule["wait"] = "only core/base waits"
  pattern["entropy"] = "(^|[^A-Za-z0-9_])(random_device|getrandom|getentropy)([^A-Za-z0-9_]|$)"
  rule["entropy"] = "entropy is injected, from core/base"
  pattern["file"] = "(^|[^A-Za-z0-9_])std::([io]?fstream|basic_[io]?fstream|filesystem)([^A-Za-z0-9_]|$)|(^|[^A-Za-z0-9_.>])(fopen|freopen|fdopen|mmap|openat)[ ]*[(]|(^|[^A-Za-z0-9_.>:])open[ ]*[(]|(^|[^A-Za-z0-9_>])::open[ ]*[(]"
  rule["file"] = "files are opened by core/base"
}

FNR == 1 {
  finish_file()
  file = FILENAME
  here = layer(FILENAME)
  closing = ""
  directives = 0
  guard = ""
  toggle = 0
  cpp = FILENAME !~ /\.js$/
  privileged = here == "tools" || here == "tests"
  knows_protobuf = FILENAME ~ /^(core\/framework|core\/io|distributed|python_free_api)\// ||
      FILENAME ~ /^core\/graph\/graph_def/ || FILENAME ~ /^core\/runtime\/step_stats/
  if (here == "") breach("the folder has no layer", "docs/architecture.md names them all")
}

FNR == 601 { breach("more than 600 lines", "one noun a file") }

!cpp { next }

closing == "" && /^[ \t]*#[ \t]*include[ \t]*["<]/ {
  ++directives
  check_include($0)
  next
}

{
  code = code_of($0)
  if (code ~ /^[ \t]*#/) {
    ++directives
    if (guard != "" && directives == 2) {
      # The pair is complete only if the second line defines what the first one tests.
      split(code, word, " ")
      if (code ~ /^[ \t]*#[ \t]*define/ && (word[2] == guard || word[3] == guard)) guard = ""
    }
    if (code ~ /^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|elifdef|elifndef)([^A-Za-z0-9_]|$)/) {
      check_conditional(code, directives)
    }
  }
  if (here == "core/base") next
  for (name in pattern) {
    if (code !~ pattern[name]) continue
    if (name == "file" && privileged) continue
    # What core/base is made of is tested from plain threads.
    if (name == "thread" && FILENAME ~ /^tests\/core\/base\//) continue
    # gRPC takes a deadline as a point of the system's clock, and so the transport must read it.
    if (name == "clock" && FILENAME ~ /^distributed\/grpc\// && code ~ /system_clock::now/ &&
        comment ~ /(^|[^A-Za-z])layers: *[^ ]/) {
      continue
    }
    text = code
    sub(/^[ \t]+/, "", text)
    breach(text, rule[name])
  }
}

END {
  finish_file()
  exit (breaches > 0)
}
END

# One awk for all, as starting one a file would take most of the time. No file: nothing to breach.
files | {
  mapfile -t paths
  [ ${#paths[@]} -eq 0 ] || LC_ALL=C awk "$program" "${paths[@]}"
}
