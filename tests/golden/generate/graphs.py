"""Writes GraphDefs node by node: what TensorFlow and Millrace then both read.

Nodes are not made by TensorFlow's functions, since those would refuse what must be refused by the
reader of the bytes.
"""

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, graph_pb2
from tensorflow.python.framework import op_def_registry


class Out:
    """One output of a node."""

    def __init__(self, node, index, dtype):
        self.name = node if index == 0 else f"{node}:{index}"
        self.dtype = dtype  # the enum's number


def as_array(value):
    """An array that TensorFlow has a dtype for; text becomes strings."""
    array = np.asarray(value)
    if array.dtype.kind in "SU":
        flat = [s.encode() if isinstance(s, str) else bytes(s) for s in np.ravel(value).tolist()]
        array = np.array(flat, dtype=object).reshape(array.shape)
    return array


def dtype_of(array):
    if array.dtype == object:
        return tf.string.as_datatype_enum
    return tf.as_dtype(array.dtype).as_datatype_enum


def tensor_proto(array):
    """The array as a TensorProto with raw content (strings: with values)."""
    array = as_array(array)
    if array.dtype == object or array.size == 0:
        return tf.make_tensor_proto(array.tolist() if array.dtype == object else array,
                                    dtype=tf.as_dtype(dtype_of(array)), shape=array.shape)
    proto = tf.make_tensor_proto(np.zeros([0], array.dtype))
    proto.tensor_shape.CopyFrom(tf.TensorShape(array.shape).as_proto())
    proto.tensor_content = np.ascontiguousarray(array).tobytes()
    return proto


def shape_proto(dims):
    """None: unknown rank; None or -1 within: an unknown extent."""
    return tf.TensorShape(None if dims is None else
                          [None if d in (None, -1) else d for d in dims]).as_proto()


def type_enum(value):
    return value if isinstance(value, int) else tf.as_dtype(value).as_datatype_enum


def fill_attr(attr, kind, value):
    """Sets an AttrValue of an op definition's kind."""
    if isinstance(value, attr_value_pb2.AttrValue):
        attr.CopyFrom(value)
    elif kind.startswith("list("):
        attr.list.SetInParent()
        for element in value:
            kind_ = kind[5:-1]
            if kind_ == "type":
                attr.list.type.append(type_enum(element))
            elif kind_ == "shape":
                attr.list.shape.add().CopyFrom(shape_proto(element))
            elif kind_ == "string":
                attr.list.s.append(element.encode() if isinstance(element, str) else element)
            else:
                getattr(attr.list, {"int": "i", "float": "f", "bool": "b"}[kind_]).append(element)
    elif kind == "type":
        attr.type = type_enum(value)
    elif kind == "shape":
        attr.shape.CopyFrom(shape_proto(value))
    elif kind == "tensor":
        attr.tensor.CopyFrom(tensor_proto(value))
    elif kind == "string":
        attr.s = value.encode() if isinstance(value, str) else value
    else:
        setattr(attr, {"int": "i", "float": "f", "bool": "b"}[kind], value)


class GraphWriter:
    """A GraphDef under construction, with all attributes written out, as TensorFlow does it."""

    def __init__(self):
        self.graph_def = graph_pb2.GraphDef()
        self.graph_def.versions.producer = tf.version.GRAPH_DEF_VERSION

    def node(self, op, inputs=(), name=None, control=(), device="", **attrs):
        """Adds a node; a list among `inputs` is the value of a list argument. Returns its outputs.

        Types and lengths of lists follow from the inputs, unless they are given.
        """
        definition = op_def_registry.get(op)
        if name is None:
            name = f"n{len(self.graph_def.node)}"
        node = self.graph_def.node.add(name=name, op=op, device=device)
        attrs = {key.rstrip("_"): value for key, value in attrs.items()}
        for arg, value in zip(definition.input_arg, inputs):
            values = value if isinstance(value, (list, tuple)) else [value]
            node.input.extend(v.name for v in values)
            if arg.number_attr:
                attrs.setdefault(arg.number_attr, len(values))
            if arg.type_list_attr:
                attrs.setdefault(arg.type_list_attr, [v.dtype for v in values])
            elif arg.type_attr and values:
                attrs.setdefault(arg.type_attr, values[0].dtype)
        node.input.extend(f"^{c.name.split(':')[0] if isinstance(c, Out) else c}" for c in control)
        for attr in definition.attr:
            if attr.name in attrs:
                fill_attr(node.attr[attr.name], attr.type, attrs.pop(attr.name))
            elif attr.HasField("default_value"):
                node.attr[attr.name].CopyFrom(attr.default_value)
        for key, value in attrs.items():  # annotations
            fill_attr(node.attr[key], "list(string)" if isinstance(value, list) else "string", value)
        return self._outputs(definition, node)

    def one(self, op, *inputs, **kwargs):
        """As node, for an op with one output."""
        return self.node(op, inputs, **kwargs)[0]

    def _outputs(self, definition, node):
        dtypes = []
        for arg in definition.output_arg:
            if arg.type_list_attr:
                dtypes += list(node.attr[arg.type_list_attr].list.type)
                continue
            count = node.attr[arg.number_attr].i if arg.number_attr else 1
            dtype = node.attr[arg.type_attr].type if arg.type_attr else arg.type
            dtypes += [dtype] * count
        return [Out(node.name, i, dtype) for i, dtype in enumerate(dtypes)]

    def placeholder(self, array, static="known", name=None):
        """Of the array's dtype. `static`: which of its shape is said (known, extents, nothing)."""
        array = as_array(array)
        shape = {"known": list(array.shape), "extents": [None] * array.ndim, "nothing": None}
        return self.one("Placeholder", name=name, dtype=dtype_of(array), shape=shape[static])

    def const(self, array, name=None):
        array = as_array(array)
        return self.one("Const", name=name, dtype=dtype_of(array), value=array)

    def variable(self, dtype, shape, name):
        return self.one("VarHandleOp", name=name, dtype=dtype, shape=shape, shared_name=name)
