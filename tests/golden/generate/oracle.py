"""Lets TensorFlow compute what a graph means, and writes cases in the form of golden.proto."""

import gzip
import io
import os
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2

from graphs import GraphWriter, as_array, tensor_proto

ELEMENTWISE, ACCUMULATED, EXACT = 0, 1, 2

# TensorFlow's own threads take denormal numbers for 0; this one does not.
CALLER_RUNS = config_pb2.RunOptions(inter_op_thread_pool=-1)

tf.compat.v1.disable_eager_execution()
tf.get_logger().setLevel("ERROR")


def session_config():
    """As the graph stands: no rewriting of it, so that each op is TensorFlow's kernel."""
    config = config_pb2.ConfigProto(device_count={"CPU": 2}, intra_op_parallelism_threads=1,
                                    inter_op_parallelism_threads=1)
    config.graph_options.optimizer_options.opt_level = -1
    rewrites = config.graph_options.rewrite_options
    rewrites.disable_meta_optimizer = True
    rewrites.constant_folding = rewriter_config_pb2.RewriterConfig.OFF
    return config


def rng(name):
    """Random numbers that depend on the name only."""
    return np.random.default_rng(zlib.crc32(name.encode()))


class Run:
    """A step: what it is fed and asked for. With `xs`, gradients of `ys` as well."""

    def __init__(self, feeds=(), fetches=(), targets=(), ys=(), xs=(), dxs=None):
        self.feeds = [(out.name, as_array(value)) for out, value in feeds]
        self.fetches = [out.name for out in fetches]
        self.targets = list(targets)
        self.ys = [out.name for out in ys]
        self.xs = [out.name for out in xs]
        self.values, self.dys, self.error = [], [], 0
        self.dxs = []
        # Computes the gradients from those of the one y, if TensorFlow has none (torch_values.py):
        # by the name of the x.
        self.other = dxs


class Case:
    def __init__(self, name, op, graph, runs, precision=ELEMENTWISE, any_zero=False):
        self.name, self.op, self.graph, self.runs = name, op, graph, runs
        self.precision, self.any_zero = precision, any_zero

    def has_gradient(self):
        return any(run.dxs for run in self.runs)

    def compute(self):
        """Fills in what TensorFlow computes."""
        graph = tf.Graph()
        try:
            with graph.as_default():
                tf.import_graph_def(self.graph.graph_def, name="")
        except (ValueError, TypeError, tf.errors.OpError) as error:
            self._refused(getattr(error, "error_code", 3), error)
            return
        with tf.compat.v1.Session(graph=graph, config=session_config()) as session:
            for run in self.runs:
                self._run(graph, session, run)

    def _refused(self, code, why):
        self.why = str(why)
        for run in self.runs:
            run.error = code

    def _run(self, graph, session, run):
        feeds = {tensor_name(name): value for name, value in run.feeds}
        fetches = [graph.get_tensor_by_name(tensor_name(name)) for name in run.fetches]
        targets = [graph.get_operation_by_name(name) for name in run.targets]
        try:
            values = session.run([fetches, targets], feeds, CALLER_RUNS)[0]
        except tf.errors.OpError as error:
            run.error, self.why = error.error_code, str(error)
            return
        run.values = [as_array(value) for value in values]
        if not run.xs:
            return
        shapes = dict(zip(run.fetches, run.values))
        run.dys = [(y, self._dy(y, shapes[y])) for y in run.ys]
        if run.other is not None:
            run.dxs = run.other(run.dys[0][1])
            return
        try:
            with graph.as_default():
                dxs = tf.gradients([graph.get_tensor_by_name(tensor_name(y)) for y in run.ys],
                                   [graph.get_tensor_by_name(tensor_name(x)) for x in run.xs],
                                   [tf.constant(dy) for _, dy in run.dys])
                dxs = [(x, tf.convert_to_tensor(dx)) for x, dx in zip(run.xs, dxs)
                       if dx is not None]
            values = session.run([dx for _, dx in dxs], feeds, CALLER_RUNS)
            run.dxs = [(x, value) for (x, _), value in zip(dxs, values)]
        except (LookupError, TypeError, ValueError, tf.errors.OpError) as error:
            run.dys, run.no_gradient = [], str(error)

    def _dy(self, name, y):
        draw = rng(self.name + name).uniform(-2, 2, y.shape)
        return np.asarray(np.round(draw * 32) / 32, y.dtype)

    def serialized(self):
        graph = self.graph.graph_def.SerializeToString(deterministic=True)
        return (field(1, self.name) + field(2, self.op) + field(3, graph) +
                number(4, self.precision) + b"".join(field(5, run_bytes(r)) for r in self.runs) +
                number(6, int(self.any_zero)))


def tensor_name(name):
    return name if ":" in name else name + ":0"


# golden.proto by hand: it has strings, messages and small numbers only.
def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def field(tag, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(tag << 3 | 2) + varint(len(value)) + value


def number(tag, value):
    return varint(tag << 3) + varint(value) if value else b""


def named(tag, name, value):
    proto = tensor_proto(value).SerializeToString(deterministic=True)
    return field(tag, field(1, name) + field(2, proto))


def run_bytes(run):
    out = b"".join(named(1, name, value) for name, value in run.feeds)
    if run.error:
        # What was asked for is asked of the other reader as well; there are no values.
        out += b"".join(field(2, field(1, name)) for name in run.fetches)
    else:
        out += b"".join(named(2, name, v) for name, v in zip(run.fetches, run.values))
    out += b"".join(field(3, name) for name in run.targets) + number(4, run.error)
    if run.dxs:
        out += b"".join(named(5, name, value) for name, value in run.dys)
        out += b"".join(named(6, name, value) for name, value in run.dxs)
    return out


def write_family(path, cases):
    """The same bytes for the same cases."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as stream:
        for case in cases:
            stream.write(field(1, case.serialized()))
    with open(path, "wb") as file:
        file.write(out.getvalue())


def op_case(op, inputs, name, *, static="known", const=(), precision=ELEMENTWISE, gradient=True,
            differentiate=None, dxs=None, any_zero=False, **attrs):
    """One node of `op`: all its outputs, and the gradients of all inputs that are numbers.

    Args:
      inputs: arrays; a list of arrays for a list argument.
      static: what placeholders say of their shape.
      const: positions of inputs that are constants in the graph, not fed.
      differentiate: positions of inputs whose gradients are wanted; all floating ones by default.
      dxs: computes the gradients by position of the input, from (inputs, dy, attrs), if TensorFlow
        has none.
      any_zero: 0 is as good as -0, since TensorFlow itself has the one or the other by place.
    """
    graph = GraphWriter()
    feeds, outs, xs = [], [], []
    count = 0

    def add(value, position):
        nonlocal count
        array, label = as_array(value), f"x{count}"
        count += 1
        if position in const:
            return graph.const(array, label)
        out = graph.placeholder(array, static, label)
        feeds.append((out, array))
        if array.dtype.kind == "f" or array.dtype.name == "bfloat16":
            if differentiate is None or position in differentiate:
                xs.append(out)
        return out

    for position, value in enumerate(inputs):
        if isinstance(value, (list, tuple)):
            outs.append([add(v, position) for v in value])
        else:
            outs.append(add(value, position))
    fetches = graph.node(op, outs, name="y", **attrs)
    ys = [out for out in fetches if tf.as_dtype(out.dtype).is_floating]
    if not gradient or not ys:
        xs, ys = [], []
    def other(dy):
        return [(outs[i].name, value) for i, value in dxs(inputs, dy, attrs).items()]

    return Case(name, op, graph, [Run(feeds, fetches, (), ys, xs, other if dxs else None)],
                precision, any_zero)
