"""Protocol buffers and gRPC with Debian's protoc.

Bazel's own proto_library and cc_proto_library are not used: they build protoc from
@com_google_protobuf's sources, which are not here.
"""

load("@rules_cc//cc:defs.bzl", "cc_library")

def cc_proto_library(name, srcs, deps = [], grpc = False, **kwargs):
    """Compiles .proto files to a cc_library; included by their path from the root.

    Args:
      name: the target.
      srcs: .proto files of this package.
      deps: other targets of this macro whose files srcs import.
      grpc: whether to generate services as well.
      **kwargs: passed on (visibility, testonly).
    """

    # All .proto files that protoc reads, its imports included.
    native.filegroup(
        name = name + "_protos",
        srcs = srcs + [dep + "_protos" for dep in deps],
        **kwargs
    )

    suffixes = [".pb"] + ([".grpc.pb"] if grpc else [])
    stems = [src[:-len(".proto")] for src in srcs]
    headers = [stem + suffix + ".h" for stem in stems for suffix in suffixes]
    sources = [stem + suffix + ".cc" for stem in stems for suffix in suffixes]

    # Absolute tools: the action runs with a fixed PATH, and /usr/bin is where dpkg puts them.
    # -I. is the workspace root.
    plugin = "--plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin --grpc_out=$(GENDIR) " if grpc else ""
    native.genrule(
        name = name + "_generate",
        srcs = srcs + [name + "_protos"],
        outs = headers + sources,
        testonly = kwargs.get("testonly", False),
        cmd = "/usr/bin/protoc -I. --cpp_out=$(GENDIR) " + plugin +
              " ".join(["$(execpath %s)" % src for src in srcs]),
    )
    cc_library(
        name = name,
        srcs = sources,
        hdrs = headers,
        deps = deps + ["@system//:grpc" if grpc else "@system//:protobuf"],
        **kwargs
    )

def cc_grpc_library(name, srcs, deps = [], **kwargs):
    """cc_proto_library whose files also hold gRPC services."""
    cc_proto_library(name, srcs, deps, grpc = True, **kwargs)
