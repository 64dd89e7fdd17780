"""Fuzz targets: a test of the corpus in every build, a libFuzzer binary with --config=fuzz."""

load("@rules_cc//cc:defs.bzl", "cc_test")

def cc_fuzz_test(name, srcs, corpus, deps = [], **kwargs):
    """A test that feeds each corpus file to LLVMFuzzerTestOneInput.

    With --config=fuzz (clang) the same target is a libFuzzer binary: as a test it still runs
    the corpus files once each; started by hand on a directory it explores:
    bazel-bin/tests/fuzz/text_fuzzer -max_total_time=60 DIRECTORY

    Args:
      name: the target.
      srcs: files that define LLVMFuzzerTestOneInput.
      corpus: input files.
      deps: libraries under test.
      **kwargs: passed on (tags).
    """
    cc_test(
        name = name,
        size = "small",
        srcs = srcs + select({
            "//:fuzz": [],
            "//conditions:default": ["//tools/bazel:fuzz_replay.cc"],
        }),
        args = ["$(location %s)" % file for file in corpus],
        data = corpus,
        linkopts = select({
            "//:fuzz": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        deps = deps,
        **kwargs
    )
