#!/bin/bash
# Plants each kind of breach in a tree of its own and wants check_layers.sh to find it, on its line;
# and plants what only looks like one, and wants silence.
set -eu

readonly check="$(cd "$(dirname "$0")" && pwd)/check_layers.sh"
readonly tree="$(mktemp -d "${TEST_TMPDIR:-/tmp}/check_layers.XXXXXX")"
trap 'rm -rf "$tree"' EXIT
failures=0
cases=0

# check_layers.sh's output over a tree that holds only file $1 with text $2; status in $status.
run() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/$(dirname "$1")"
  printf '%s\n' "$2" > "$tree/$1"
  status=0
  output=$("$check" "$tree") || status=$?
  cases=$((cases + 1))
}

report() {
  echo "FAILED: $1" >&2
  printf '%s\n' "$2" | sed 's/^/    source: /' >&2
  printf '%s\n' "status $status" "$output" | sed 's/^/    check:  /' >&2
  failures=$((failures + 1))
}

# breach FILE LINE RULE TEXT: one breach, on that line, under that rule.
breach() {
  run "$1" "$4"
  if [ "$status" != 1 ] || [ "$(printf '%s\n' "$output" | wc -l)" != 1 ] ||
    [[ $output != "$1:$2: "*"$3"* ]]; then
    report "$1:$2 should break: $3" "$4"
  fi
}

# clean FILE TEXT: no breach.
clean() {
  run "$1" "$2"
  if [ "$status" != 0 ] || [ -n "$output" ]; then report "$1 should be clean" "$2"; fi
}

# The table, folder by folder: what each one may not include, then what it may.
forbidden() {
  local target
  for target in $2; do
    breach "$1/x.cc" 1 "$1 may include only" "#include \"$target/y.h\""
  done
  for target in $1 $3; do
    clean "$1/x.cc" "#include \"$target/y.h\""
  done
}
forbidden core/base "core/framework core/io core/device core/graph core/runtime ops kernels graph_opt
  distributed python_free_api tools tests" ""
forbidden core/framework "core/io core/device core/graph core/runtime ops kernels graph_opt distributed
  python_free_api tools tests" "core/base"
forbidden core/io "core/device core/graph core/runtime ops kernels graph_opt distributed
  python_free_api tools tests" "core/framework core/base"
forbidden core/device "core/io core/graph core/runtime ops kernels graph_opt distributed
  python_free_api tools tests" "core/framework core/base"
forbidden core/graph "core/io core/device core/runtime ops kernels graph_opt distributed
  python_free_api tools tests" "core/framework core/base"
forbidden core/runtime "core/device ops kernels graph_opt distributed python_free_api tools tests" \
  "core/graph core/io core/framework core/base"
forbidden ops "core/io core/device core/runtime kernels graph_opt distributed python_free_api tools
  tests" "core/graph core/framework core/base"
forbidden kernels "core/graph core/runtime ops graph_opt distributed python_free_api tools tests" \
  "core/device core/io core/framework core/base kernels/cpu"
forbidden graph_opt "core/io core/device core/runtime kernels distributed python_free_api tools tests" \
  "ops core/graph core/framework core/base"
forbidden distributed "core/device kernels graph_opt python_free_api tools tests" \
  "core/runtime ops core/graph core/io core/framework core/base distributed/strategy"
forbidden distributed/strategy "core/device kernels python_free_api tools tests" \
  "graph_opt core/runtime ops core/graph core/io core/framework core/base distributed"
forbidden python_free_api "tools tests" "distributed distributed/strategy distributed/grpc graph_opt
  kernels ops core/runtime core/device core/graph core/io core/framework core/base"
forbidden tools "" "tests python_free_api core/base distributed/strategy"
forbidden tests "" "tools python_free_api core/base distributed/strategy"

breach core/testing/x.h 1 "docs/architecture.md" "int x;"
breach extras/x.cc 1 "docs/architecture.md" "int x;"
breach ops/x.cc 2 "starts at the root" $'\n#include "../kernels/y.h"'
breach core/base/x.cc 1 "std and Abseil only" '#include <zlib.h>'
breach core/base/x.cc 1 "std and Abseil only" '#include "gtest/gtest.h"'
clean core/base/x.cc $'#include <string>\n#include <unistd.h>\n#include "absl/status/status.h"'

# System libraries that only some may know.
for file in core/runtime/x.cc distributed/master.cc python_free_api/x.cc; do
  breach $file 2 "only distributed/grpc" $'\n#include <grpcpp/grpcpp.h>'
  breach $file 1 "only distributed/grpc" '#include "grpc/grpc.h"'
done
breach distributed/master.cc 1 "only distributed/grpc" '#include "distributed/grpc/x.grpc.pb.h"'
clean distributed/grpc/x.cc $'#include <grpcpp/grpcpp.h>\n#include "distributed/grpc/x.grpc.pb.h"'
clean tests/distributed/x.cc '#include <grpcpp/grpcpp.h>'

for header in cuda.h cuda_runtime.h cublasLt.h cudnn.h nccl.h; do
  breach core/device/cpu.cc 1 "know CUDA" "#include <$header>"
  breach kernels/cpu/x.cc 1 "know CUDA" "#include \"$header\""
  clean core/device/cuda_device.cc "#include <$header>"
  clean core/device/cuda/device.cc "#include <$header>"
  clean kernels/cuda/x.cu.cc "#include <$header>"
done

for file in core/graph/graph.cc core/runtime/session.h ops/math.cc kernels/cpu/x.cc core/device/x.cc; do
  breach $file 1 "protobuf stays" '#include "core/framework/types.pb.h"'
  breach $file 1 "protobuf stays" '#include <google/protobuf/message.h>'
done
for file in core/framework/wire.cc core/graph/graph_def.cc core/io/events.cc core/runtime/step_stats.h \
  distributed/master.cc python_free_api/x.cc tools/x.cc tests/x.cc; do
  clean $file '#include "core/framework/types.pb.h"'
done

# What only core/base may name.
only_base() {
  breach core/runtime/x.cc 3 "$1" $'// First.\n\n  '"$2"
  breach tests/core/x.cc 1 "$1" "$2"
  breach distributed/grpc/x.h 1 "$1" "$2"
  clean core/base/x.cc "$2"
}
only_base "threads come" 'std::thread t(Run);'
only_base "threads come" 'std::vector<std::jthread> threads;'
only_base "threads come" 'auto f = std::async(Run);'
clean tests/core/base/x.cc 'std::thread t(Run);'
breach tests/core/base/x.cc 1 "nothing sleeps" 'std::this_thread::sleep_for(delay);'
only_base "nothing sleeps" 'std::this_thread::sleep_for(delay);'
only_base "nothing sleeps" 'this_thread::sleep_until(then);'
only_base "nothing sleeps" 'usleep(10);'
only_base "nothing sleeps" 'nanosleep(&a, &b);'
only_base "nothing sleeps" '::sleep(1);'
only_base "nothing sleeps" 'absl::SleepFor(absl::Seconds(1));'
only_base "clock is injected" 'auto t = std::chrono::steady_clock::now();'
only_base "clock is injected" 'auto t = absl::Now();'
only_base "clock is injected" 'clock_gettime(CLOCK_MONOTONIC, &t);'
only_base "only core/base waits" 'std::condition_variable changed_;'
only_base "only core/base waits" 'std::condition_variable_any changed_;'
only_base "entropy is injected" 'std::random_device device;'

opens_file() {
  breach core/io/x.cc 1 "files are opened" "$1"
  breach distributed/x.cc 1 "files are opened" "$1"
  clean core/base/x.cc "$1"
  clean tools/x.cc "$1"
  clean tests/x.cc "$1"
}
opens_file 'std::ifstream file(path);'
opens_file 'std::ofstream file(path);'
opens_file 'std::fstream file(path);'
opens_file 'FILE* f = fopen(path, "r");'
opens_file 'FILE* f = std::fopen(path, "r");'
opens_file 'int fd = ::open(path, 0);'
opens_file 'int fd = open(path, 0);'
opens_file 'void* p = mmap(nullptr, n, 1, 2, fd, 0);'
opens_file 'std::filesystem::remove(path);'

# The one exemption, with its reason.
deadline='auto t = std::chrono::system_clock::now() + bound;'
breach distributed/grpc/x.cc 1 "clock is injected" "$deadline"
breach distributed/grpc/x.cc 1 "clock is injected" "$deadline  // layers:"
breach distributed/master.cc 1 "clock is injected" "$deadline  // layers: a deadline"
clean distributed/grpc/x.cc "$deadline  // layers: gRPC wants a deadline as a point in time"
breach distributed/grpc/x.cc 1 "clock is injected" \
  'auto t = std::chrono::steady_clock::now();  // layers: a deadline'

# Conditions.
readonly condition="instead of a condition"
breach ops/x.cc 1 "$condition" $'#ifdef NDEBUG\n#endif'
breach ops/x.cc 1 "$condition" $'#ifndef X\n#define X 1\n#endif'
breach ops/x.h 4 "$condition" $'#ifndef OPS_X_H_\n#define OPS_X_H_\n\n#if defined(CUDA)\n#endif\n#endif'
breach ops/x.h 1 "$condition" $'#ifndef NDEBUG\n#include <string>\n#endif'
breach ops/x.h 4 "$condition" $'#ifndef OPS_X_H_\n#define OPS_X_H_\n\n # ifndef Y\n#endif\n#endif'
breach kernels/cuda/x.cu.cc 1 "$condition" $'#if __CUDA_ARCH__\n#endif'
clean ops/x.h $'// What.\n#ifndef OPS_X_H_\n#define OPS_X_H_\n#endif  // OPS_X_H_'
clean ops/x.h $'#pragma once\nint x;'
clean kernels/cpu/x.cc $'#undef HWY_TARGET_INCLUDE\n#if HWY_ONCE\n#endif'
clean kernels/cpu/x-inl.h \
  $'#if defined(X_H_) == defined(HWY_TARGET_TOGGLE)\n#ifdef X_H_\n#undef X_H_\n#else\n#define X_H_\n#endif\n#endif'

# Length.
breach ops/x.cc 601 "one noun a file" "$(yes 'int x;' | head -601)"
breach tools/viewer/x.js 601 "one noun a file" "$(yes 'let x;' | head -700)"
clean ops/x.cc "$(yes 'int x;' | head -600)"

# Code that comes after what hides it.
breach ops/x.cc 1 "only core/base waits" "/* why */ std::condition_variable c;"
breach ops/x.cc 3 "only core/base waits" $'/* why\n*/ int x;\nstd::condition_variable c;'
breach ops/x.cc 1 "only core/base waits" "char c = '\"'; std::condition_variable d;  // \""
breach ops/x.cc 1 "only core/base waits" "int n = 1'000; std::condition_variable c;"
breach ops/x.cc 1 "only core/base waits" 'f("a\"b"); std::condition_variable c;'
breach ops/x.cc 2 "only core/base waits" $'f(R"x(a "b" // \n)x"); std::condition_variable c;'

# What is only said, or only sounds alike.
clean ops/x.cc '// std::thread, sleep_for( and fopen( are for core/base.'
clean ops/x.cc $'/* std::condition_variable\n   random_device */'
clean ops/x.cc 'auto s = "std::thread t; open(1)";'
clean ops/x.cc $'auto s = R"(\nstd::thread t;\n#ifdef X\n#include "kernels/y.h"\n)";'
clean ops/x.cc '// #include "kernels/y.h"'
clean ops/x.cc $'stream.open(1); x->open(1); Reopen(1); Open(path); auto id = std::this_thread::get_id();'
clean ops/x.cc 'std::thread_local_ish x; my::condition_variable_count y; sleepy(1); fopened(2);'
clean ops/x.js 'import("kernels/x"); open(url);'

# Nothing of ours.
mkdir -p "$tree/.hidden" "$tree/bazel-out/ops"
clean .hidden/x.cc 'std::thread t;'
clean bazel-out/ops/x.cc 'std::thread t;'
rm -rf "${tree:?}"/*
"$check" "$tree" || { echo "FAILED: an empty tree should be clean" >&2; failures=$((failures + 1)); }

# Several at once: each is told.
run ops/x.cc $'#include "kernels/y.h"\nstd::thread t;\nstd::random_device r;'
[ "$(printf '%s\n' "$output" | grep -c '^ops/x.cc:[123]: ')" = 3 ] ||
  report "all three breaches should be told" "ops/x.cc"

if "$check" "$tree/absent" 2>/dev/null; then
  echo "FAILED: an absent directory should be an error" >&2
  failures=$((failures + 1))
fi

echo "$cases cases, $failures failed"
[ "$failures" = 0 ]
