"""Ops that move elements: reshapes, joins, cuts, pads, repeats; and those that speak of shapes."""

import numpy as np

from oracle import EXACT, op_case
from values import D, F, I, L, STATIC, draw, specials, text


def move(op, label, x, *operands, const=None, dtype=I, **more):
    """`operands` are constants of the graph, and in a second case are fed."""
    operands = [np.asarray(o, dtype) for o in operands]
    positions = tuple(range(1, len(operands) + 1))
    yield op_case(op, [x, *operands], f"{op}/{label}", const=positions, precision=EXACT, **more)
    yield op_case(op, [x, *operands], f"{op}/{label}_fed", static="nothing", precision=EXACT, **more)


def refused(op, label, x, *operands, dtype=I, **more):
    operands = [np.asarray(o, dtype) for o in operands]
    positions = tuple(range(1, len(operands) + 1))
    yield op_case(op, [x, *operands], f"{op}/refused_{label}", const=positions, **more)
    yield op_case(op, [x, *operands], f"{op}/refused_{label}_fed", static="nothing", **more)


def shapes():
    for label, shape, new in [("flat", [2, 3], [6]), ("split", [6], [2, 3]), ("scalar", [1, 1], []),
                              ("from_scalar", [], [1, 1]), ("inferred", [2, 3, 4], [-1, 6]),
                              ("empty", [0, 3], [3, 0]), ("empty_inferred", [0, 3], [-1, 3]),
                              ("rank_5", [2, 6, 2], [1, 2, 3, 2, 2]), ("size_1", [1], [1])]:
        yield from move("Reshape", label, draw("rs" + label, shape), np.array(new, I))
    yield from move("Reshape", "int64_shape", draw("rsl", [4]), [2, 2], dtype=L)
    yield from move("Reshape", "int64", draw("rsi", [4], -9, 9, L), [2, 2])
    yield from move("Reshape", "text", text("a", "b"), [2, 1])
    yield from move("Reshape", "inferred_by_0", draw("rs0", [0, 3]), [-1, 0])
    yield from move("Reshape", "bool", np.array([True, False]), [1, 2])
    for label, shape, new in [("size", [2, 3], [4]), ("two_inferred", [2, 3], [-1, -1]),
                              ("negative", [2, 3], [-2, 3]), ("not_a_multiple", [2, 3], [-1, 4]),
                              ("overflow", [2, 3], [1 << 20, 1 << 20, 1 << 30])]:
        yield from refused("Reshape", label, draw("rr" + label, shape), new)

    for label, shape, perm in [("matrix", [2, 3], [1, 0]), ("same", [2, 3], [0, 1]),
                               ("rank_3", [2, 3, 4], [2, 0, 1]), ("inner", [2, 3, 4], [0, 2, 1]),
                               ("rank_5", [2, 1, 3, 2, 2], [4, 2, 0, 3, 1]), ("vector", [3], [0]),
                               ("scalar", [], []), ("empty", [0, 3, 2], [2, 1, 0]),
                               ("size_1", [1, 1], [1, 0]), ("wide", [40, 35], [1, 0])]:
        yield from move("Transpose", label, draw("tr" + label, shape), np.array(perm, I))
    for dtype in (D, I, L, bool):
        yield from move("Transpose", np.dtype(dtype).name, draw("tr", [2, 3], -9, 9, dtype), [1, 0],
                        dtype=L)
    for label, perm in [("twice", [0, 0]), ("beyond", [0, 2]), ("length", [0])]:
        yield from refused("Transpose", label, draw("trr", [2, 3]), perm)

    for dtype in (I, L):
        for label, p in [("some", [2, 0, 1, 3]), ("same", [0, 1]), ("empty", []), ("one", [0])]:
            for static in ("known", "nothing"):
                yield op_case("InvertPermutation", [np.array(p, dtype)], static=static,
                              name=f"InvertPermutation/{label}_{dtype.__name__}_{static}")
    for label, p in [("twice", [0, 0]), ("beyond", [0, 2]), ("negative", [0, -1]),
                     ("matrix", [[0, 1]])]:
        yield op_case("InvertPermutation", [np.array(p, I)], f"InvertPermutation/refused_{label}")

    for label, shape, axis in [("first", [2, 3], 0), ("last", [2, 3], -1), ("middle", [2, 3], 1),
                               ("scalar", [], 0), ("empty", [0], 1), ("rank_3", [2, 3, 2], -4),
                               ("after_last", [2, 3], 2)]:
        yield from move("ExpandDims", label, draw("ed" + label, shape), axis)
    yield from move("ExpandDims", "int64_axis", draw("ed", [2]), 0, dtype=L)
    yield from move("ExpandDims", "axis_of_length_1", draw("ed", [2]), [1])
    for label, axis in [("axis", 3), ("negative_axis", -4)]:
        yield from refused("ExpandDims", label, draw("edr", [2, 3]), axis)

    for label, shape, dims in [("all", [1, 3, 1], []), ("one", [1, 3, 1], [0]),
                               ("negative", [1, 3, 1], [-1]), ("both", [1, 3, 1], [0, 2]),
                               ("none", [2, 3], []), ("to_scalar", [1, 1], []), ("scalar", [], []),
                               ("empty", [1, 0], [0]), ("rank_5", [1, 2, 1, 3, 1], [2, 4])]:
        for static in ("known", "nothing"):
            yield op_case("Squeeze", [draw("sq" + label, shape)], f"Squeeze/{label}_{static}",
                          static=static, squeeze_dims=dims, precision=EXACT)
    for label, dims in [("not_1", [1]), ("beyond", [3]), ("negative", [-4])]:
        for static in ("known", "nothing"):
            yield op_case("Squeeze", [draw("sqr", [1, 3, 1])], f"Squeeze/refused_{label}_{static}",
                          static=static, squeeze_dims=dims)


def shape_values():
    many = [("scalar", []), ("vector", [3]), ("rank_3", [2, 3, 4]), ("empty", [0, 2]),
            ("rank_5", [1, 2, 3, 1, 2])]
    for op in ("Shape", "Size"):
        for label, shape in many:
            for static in ["known"] + STATIC:
                for dtype in (I, L):
                    yield op_case(op, [draw(op, shape)], static=static, out_type=dtype,
                                  name=f"{op}/{label}_{static}_{dtype.__name__}")
        yield op_case(op, [text("a", "b")], f"{op}/text")
    for label, shape in many:
        for static in ["known"] + STATIC:
            yield op_case("Rank", [draw("rank", shape)], f"Rank/{label}_{static}", static=static)
    for label, list_ in [("one", [[2, 3]]), ("some", [[], [4], [2, 0, 3]]), ("two", [[2], [2]])]:
        for dtype in (I, L):
            for static in ["known", "nothing"]:
                yield op_case("ShapeN", [[draw(f"sn{i}", s) for i, s in enumerate(list_)]],
                              f"ShapeN/{label}_{dtype.__name__}_{static}", static=static,
                              out_type=dtype)
    for label, a, b in [("same", [2, 3], [2, 3]), ("scalar", [], [2]), ("left", [3], [2, 3]),
                        ("right", [2, 3], [1]), ("both", [2, 1, 3], [4, 1]), ("ones", [1, 1], [1]),
                        ("scalars", [], []), ("empty", [0, 1], [1, 5]),
                        ("rank_5", [2, 1, 3, 1, 2], [1, 2, 1, 4, 2])]:
        for dtype in (I, L):
            yield op_case("BroadcastGradientArgs", [np.array(a, dtype), np.array(b, dtype)],
                          f"BroadcastGradientArgs/{label}_{dtype.__name__}")
    yield op_case("BroadcastGradientArgs", [np.array([2, 3], I), np.array([2], I)],
                  "BroadcastGradientArgs/refused_shapes")
    for label, axis, list_ in [("first", 0, [[2, 3], [4, 3], [1, 3]]), ("last", 1, [[2, 3], [2, 1]]),
                               ("negative", -1, [[2, 3], [2, 1]]), ("empty", 0, [[0, 2], [3, 2]])]:
        yield op_case("ConcatOffset", [np.array(axis, I), [np.array(s, I) for s in list_]],
                      f"ConcatOffset/{label}")
    for label, axis, list_ in [("axis", 2, [[2, 3], [2, 3]]), ("shapes", 0, [[2, 3], [2, 4]]),
                               ("ranks", 0, [[2, 3], [2]]), ("one", 0, [[5]])]:
        yield op_case("ConcatOffset", [np.array(axis, I), [np.array(s, I) for s in list_]],
                      f"ConcatOffset/refused_{label}", static="nothing")


def joins():
    def concat(label, axis, values, const=True, dtype=I, **more):
        yield op_case("ConcatV2", [values, np.asarray(axis, dtype)], f"ConcatV2/{label}",
                      const=(1,), precision=EXACT, **more)
        yield op_case("ConcatV2", [values, np.asarray(axis, dtype)], f"ConcatV2/{label}_fed",
                      static="nothing", precision=EXACT, **more)

    for label, axis, list_ in [("rows", 0, [[2, 3], [1, 3]]), ("columns", 1, [[2, 3], [2, 1], [2, 2]]),
                               ("negative", -2, [[2, 3, 1], [2, 1, 1]]), ("vectors", 0, [[2], [3]]),
                               ("empty_part", 0, [[0, 3], [2, 3]]), ("empty", 1, [[0, 3], [0, 2]]),
                               ("rank_5", 3, [[1, 2, 1, 2, 2], [1, 2, 1, 3, 2]]),
                               ("many", 0, [[1]] * 9), ("size_1", 0, [[1], [1]])]:
        yield from concat(label, axis, [draw(f"{label}{i}", s) for i, s in enumerate(list_)])
    for dtype in (D, I, L, bool):
        yield from concat(np.dtype(dtype).name, 0, [draw("c1", [2], -9, 9, dtype),
                                                    draw("c2", [3], -9, 9, dtype)])
    # Of this TensorFlow cannot make the gradient.
    yield from concat("int64_axis", 0, [draw("c1", [2]), draw("c2", [3])], dtype=L, gradient=False)
    yield from concat("text", 0, [text("a"), text("bb", "c")])
    for label, axis, list_ in [("refused_axis", 2, [[2, 3], [2, 3]]),
                               ("refused_shapes", 0, [[2, 3], [2, 4]]),
                               ("refused_scalars", 0, [[], []])]:
        yield from concat(label, axis, [draw(f"{label}{i}", s) for i, s in enumerate(list_)])

    for label, axis, shape, n in [("first", 0, [2, 3], 2), ("last", -1, [2, 3], 3),
                                  ("middle", 1, [2, 3], 2), ("scalars", 0, [], 4),
                                  ("one", 0, [2], 1), ("empty", 0, [0, 2], 2),
                                  ("rank_5", 2, [1, 2, 2, 1], 2)]:
        values = [draw(f"pk{label}{i}", shape) for i in range(n)]
        for static in ["known"] + STATIC:
            yield op_case("Pack", [values], f"Pack/{label}_{static}", static=static, axis=axis,
                          precision=EXACT)
    for dtype in (D, I, L, bool):
        yield op_case("Pack", [[draw("p1", [2], -9, 9, dtype), draw("p2", [2], -9, 9, dtype)]],
                      f"Pack/{np.dtype(dtype).name}", precision=EXACT)
    yield op_case("Pack", [[text("a", "b"), text("c", "")]], "Pack/text")
    for label, axis, list_ in [("axis", 2, [[2], [2]]), ("negative_axis", -3, [[2], [2]]),
                               ("shapes", 0, [[2], [3]])]:
        for static in ("known", "nothing"):
            yield op_case("Pack", [[draw(f"pr{i}", s) for i, s in enumerate(list_)]],
                          f"Pack/refused_{label}_{static}", static=static, axis=axis)

    for label, axis, shape, n in [("first", 0, [2, 3], 2), ("last", -1, [2, 3], 3),
                                  ("middle", 1, [2, 3, 2], 3), ("vector", 0, [4], 4),
                                  ("one", 0, [1, 2], 1), ("none", 0, [0, 2], 0),
                                  ("empty", 0, [2, 0], 2), ("rank_5", 2, [1, 2, 2, 1, 3], 2)]:
        for static in ["known"] + STATIC:
            yield op_case("Unpack", [draw("up" + label, shape)], f"Unpack/{label}_{static}",
                          static=static, axis=axis, num=n, precision=EXACT)
    for dtype in (D, I, L, bool):
        yield op_case("Unpack", [draw("u", [2, 3], -9, 9, dtype)], f"Unpack/{np.dtype(dtype).name}",
                      num=2, precision=EXACT)
    yield op_case("Unpack", [text("a", "b")], "Unpack/text", num=2)
    for label, axis, n in [("axis", 2, 2), ("number", 0, 3), ("negative_axis", -3, 2)]:
        for static in ("known", "nothing"):
            yield op_case("Unpack", [draw("ur", [2, 3])], f"Unpack/refused_{label}_{static}",
                          static=static, axis=axis, num=n)


def repeats():
    for label, shape, pads in [("vector", [3], [[1, 2]]), ("matrix", [2, 3], [[1, 0], [0, 2]]),
                               ("nothing", [2, 3], [[0, 0], [0, 0]]), ("rank_3", [2, 1, 2],
                               [[1, 1], [2, 0], [0, 1]]), ("empty", [0, 2], [[1, 1], [0, 0]]),
                               ("empty_stays", [0, 2], [[0, 0], [1, 1]]),
                               ("rank_5", [1, 2, 1, 2, 1], [[0, 1], [1, 0], [0, 0], [0, 1], [1, 1]]),
                               ("size_1", [1], [[3, 3]]), ("scalar", [], np.zeros([0, 2], I))]:
        yield from move("Pad", label, draw("pad" + label, shape), pads)
        x = draw("pad2" + label, shape)
        for static, const in [("known", (1,)), ("nothing", ())]:
            yield op_case("PadV2", [x, np.array(pads, I), np.float32(1.5)], const=const,
                          static=static, name=f"PadV2/{label}_{static}", precision=EXACT)
    for dtype in (D, I, L):
        yield from move("Pad", dtype.__name__, draw("pd", [2, 3], -9, 9, dtype), [[1, 1], [0, 1]],
                        dtype=L)
        yield op_case("PadV2", [draw("pd", [2], -9, 9, dtype), np.array([[1, 1]], I), dtype(7)],
                      f"PadV2/{dtype.__name__}", precision=EXACT)
    yield op_case("PadV2", [draw("pn", [2]), np.array([[1, 1]], I), np.float32(np.nan)],
                  "PadV2/by_nan", precision=EXACT)
    for label, pads in [("negative", [[-1, 0], [0, 0]]), ("rows", [[1, 1]]),
                        ("columns", [[1, 1, 1], [0, 0, 0]])]:
        yield from refused("Pad", label, draw("pr", [2, 3]), pads)

    for label, shape, n in [("vector", [3], [2]), ("matrix", [2, 3], [2, 2]), ("once", [2], [1]),
                            ("never", [2, 3], [0, 1]), ("scalar", [], []), ("empty", [0, 2], [2, 2]),
                            ("rank_3", [2, 1, 2], [1, 3, 2]), ("rank_5", [1, 2, 1, 2, 1],
                            [2, 1, 2, 1, 3]), ("size_1", [1], [4])]:
        yield from move("Tile", label, draw("tile" + label, shape), np.array(n, I))
    for dtype in (D, I, L, bool):
        yield from move("Tile", np.dtype(dtype).name, draw("tile", [2], -9, 9, dtype), [2], dtype=L)
    for label, n in [("negative", [-1, 1]), ("length", [2])]:
        yield from refused("Tile", label, draw("tr", [2, 3]), n)

    for label, shape, new in [("scalar", [], [2, 3]), ("row", [3], [2, 3]), ("column", [2, 1], [2, 3]),
                              ("same", [2, 3], [2, 3]), ("scalars", [], []), ("empty", [1, 2], [0, 2]),
                              ("rank_3", [1, 3, 1], [2, 3, 2]), ("rank_5", [2, 1, 1, 3],
                              [2, 2, 1, 2, 3]), ("size_1", [1], [1, 1])]:
        yield from move("BroadcastTo", label, draw("bt" + label, shape), np.array(new, I))
    for dtype in (D, I, L, bool):
        yield from move("BroadcastTo", np.dtype(dtype).name, draw("bt", [2], -9, 9, dtype), [3, 2],
                        dtype=L)
    for label, shape, new in [("shapes", [2], [3]), ("rank", [2, 2], [2]), ("negative", [1], [-2]),
                              ("overflow", [1], [1 << 30, 1 << 30, 1 << 30])]:
        yield from refused("BroadcastTo", label, draw("btr", shape), new)


FAMILIES = {"shapes": shapes, "shape_values": shape_values, "joins": joins, "repeats": repeats}
