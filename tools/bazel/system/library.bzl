"""One library of the system."""

def system_library(name, define, libs = [], deps = [], **kwargs):
    """A cc_library that is nothing but link options.

    Args:
      name: the target.
      define: the preprocessor definition that carries the installed versions.
      libs: names for -l, in link order.
      deps: other system libraries.
      **kwargs: passed on (visibility).
    """

    # --as-needed: Bazel's toolchain turns it off, and every library named would be loaded
    # at start-up whether it is used or not.
    native.cc_library(
        name = name,
        defines = [define],
        linkopts = ["-Wl,--push-state,--as-needed"] + ["-l" + lib for lib in libs] + ["-Wl,--pop-state"] if libs else [],
        # clang names the list in the .d file, and Bazel wants each file there declared: so every
        # .cc file must depend on some system library, or --config=tsan refuses it.
        textual_hdrs = select({
            "@millrace//:tsan": ["@millrace//tools/bazel:tsan_ignorelist.txt"],
            "//conditions:default": [],
        }),
        deps = deps,
        **kwargs
    )
