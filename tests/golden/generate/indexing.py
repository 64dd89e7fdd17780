"""Ops with indices: slices, gathers, scatters, segments, sets, orders."""

import itertools

import numpy as np

from movement import move, refused
from oracle import ACCUMULATED, EXACT, op_case, rng
from values import D, F, I, L, STATIC, distinct, draw, text


def slices():
    for label, shape, begin, size in [("vector", [5], [1], [3]), ("matrix", [3, 4], [1, 0], [2, 2]),
                                      ("to_the_end", [3, 4], [1, 1], [-1, -1]),
                                      ("all", [2, 3], [0, 0], [2, 3]), ("none", [3], [1], [0]),
                                      ("empty", [0, 3], [0, 1], [0, 2]), ("scalar", [], [], []),
                                      ("at_the_end", [3], [3], [0]), ("size_1", [1], [0], [1]),
                                      ("rank_3", [2, 3, 4], [1, 0, 2], [1, 2, -1]),
                                      ("rank_5", [2, 1, 3, 2, 2], [0, 0, 1, 1, 0], [1, 1, 2, 1, 2])]:
        yield from move("Slice", label, draw("sl" + label, shape), np.array(begin, I),
                        np.array(size, I))
    for dtype in (D, I, L, bool):
        yield from move("Slice", np.dtype(dtype).name, draw("sl", [4], -9, 9, dtype), [1], [2],
                        dtype=L)
    for label, begin, size in [("size", [0], [6]), ("begin", [6], [0]), ("negative", [-1], [2]),
                               ("end", [4], [2]), ("negative_size", [0], [-2]),
                               ("length", [0, 0], [1, 1])]:
        yield from refused("Slice", label, draw("slr", [5]), begin, size)

    for label, shape, axis, n in [("rows", [4, 3], 0, 2), ("columns", [2, 6], 1, 3),
                                  ("negative", [2, 6], -1, 2), ("one", [3], 0, 1),
                                  ("each", [3], 0, 3), ("empty", [0, 2], 0, 2),
                                  ("empty_parts", [0, 2], 1, 2), ("rank_5", [1, 2, 1, 4, 2], 3, 2)]:
        x = draw("sp" + label, shape)
        for static, const in [("known", (0,)), ("nothing", ())]:
            yield op_case("Split", [np.int32(axis), x], f"Split/{label}_{static}", const=const,
                          static=static, num_split=n, precision=EXACT)
    for dtype in (D, I, L, bool):
        yield op_case("Split", [np.int32(0), draw("s", [4], -9, 9, dtype)], const=(0,), num_split=2,
                      name=f"Split/{np.dtype(dtype).name}", precision=EXACT)
    yield op_case("Split", [np.int32(0), text("a", "bb", "", "d")], "Split/text", const=(0,),
                  num_split=2)
    for label, axis, n in [("uneven", 0, 2), ("axis", 2, 3), ("negative_axis", -3, 3)]:
        for static, const in [("known", (0,)), ("nothing", ())]:
            yield op_case("Split", [np.int32(axis), draw("sr", [3, 3])], const=const, static=static,
                          num_split=n, name=f"Split/refused_{label}_{static}")
    for label, shape, sizes, axis in [("rows", [4, 3], [1, 3], 0), ("columns", [2, 6], [1, 2, 3], 1),
                                      ("rest", [5], [1, -1, 2], 0), ("rest_is_none", [3], [3, -1], 0),
                                      ("empty_part", [3], [0, 3], 0), ("one", [3], [3], 0),
                                      ("negative", [2, 3], [2, 1], -1), ("empty", [0, 2], [0, 0], 0),
                                      ("rank_5", [1, 2, 1, 4, 2], [3, 1], 3)]:
        for static, const, dtype in [("known", (1, 2), I), ("nothing", (), L)]:
            yield op_case("SplitV", [draw("sv" + label, shape), np.array(sizes, dtype),
                                     np.int32(axis)], f"SplitV/{label}_{static}", const=const,
                          static=static, num_split=len(sizes), precision=EXACT)
    for label, sizes, axis in [("sum", [1, 1], 0), ("two_rests", [-1, -1], 0), ("negative", [5, -2], 0),
                               ("too_much", [4, -1], 0), ("axis", [1, 2], 1)]:
        for static, const in [("known", (1, 2)), ("nothing", ())]:
            yield op_case("SplitV", [draw("svr", [3]), np.array(sizes, I), np.int32(axis)],
                          f"SplitV/refused_{label}_{static}", const=const, static=static,
                          num_split=len(sizes))


# (name, begin, end, strides, masks: begin, end, ellipsis, new axis, shrink) for a shape [4,5,6]
STRIDED = [
    ("plain", [1, 0, 2], [3, 4, 5], [1, 1, 1], (0, 0, 0, 0, 0)),
    ("steps", [0, 1, 0], [4, 5, 6], [2, 3, 4], (0, 0, 0, 0, 0)),
    ("backward", [3, 4, 5], [0, 0, 0], [-1, -2, -3], (0, 0, 0, 0, 0)),
    ("negative", [-3, -4, -5], [-1, -1, -1], [1, 1, 2], (0, 0, 0, 0, 0)),
    ("backward_all", [0, 0, 0], [0, 0, 0], [-1, -1, -1], (7, 7, 0, 0, 0)),
    ("begin_mask", [9, 9, 2], [3, 4, 5], [1, 1, 1], (3, 0, 0, 0, 0)),
    ("end_mask", [1, 2, 3], [0, 0, 5], [1, 1, 1], (0, 3, 0, 0, 0)),
    ("both_masks", [1, 2, 3], [0, 0, 0], [1, 2, -1], (5, 6, 0, 0, 0)),
    ("clamped", [-100, 2, 1], [100, 100, 100], [1, 1, 1], (0, 0, 0, 0, 0)),
    ("clamped_backward", [100, 2, 100], [-100, -100, 1], [-1, -1, -2], (0, 0, 0, 0, 0)),
    ("nothing_left", [3, 0, 0], [1, 5, 6], [1, 1, 1], (0, 0, 0, 0, 0)),
    ("prefix", [1], [3], [1], (0, 0, 0, 0, 0)),
    ("no_spec", [], [], [], (0, 0, 0, 0, 0)),
    ("shrink_first", [2], [3], [1], (0, 0, 0, 0, 1)),
    ("shrink_negative", [-1], [0], [1], (0, 0, 0, 0, 1)),
    ("shrink_all", [1, 2, 3], [2, 3, 4], [1, 1, 1], (0, 0, 0, 0, 7)),
    ("shrink_middle", [0, 3, 1], [4, 4, 5], [1, 1, 2], (0, 0, 0, 0, 2)),
    ("ellipsis_first", [0, 2], [0, 5], [1, 1], (0, 0, 1, 0, 0)),
    ("ellipsis_last", [1, 0], [3, 0], [1, 1], (0, 0, 2, 0, 0)),
    ("ellipsis_middle", [1, 0, 2], [3, 0, 5], [1, 1, 1], (0, 0, 2, 0, 0)),
    ("ellipsis_alone", [0], [0], [1], (0, 0, 1, 0, 0)),
    ("ellipsis_of_nothing", [1, 0, 1, 2], [3, 0, 4, 5], [1, 1, 1, 1], (0, 0, 2, 0, 0)),
    ("new_axis_first", [0, 1], [0, 3], [1, 1], (0, 0, 0, 1, 0)),
    ("new_axis_last", [0, 0, 1, 0], [4, 5, 3, 0], [1, 1, 1, 1], (0, 0, 0, 8, 0)),
    ("new_axes", [0, 1, 0], [0, 3, 0], [1, 1, 1], (0, 0, 0, 5, 0)),
    ("ellipsis_and_new_axis", [0, 0, 0], [0, 0, 6], [1, 1, 2], (0, 0, 1, 2, 0)),
    ("ellipsis_and_shrink", [1, 0, 2], [2, 0, 3], [1, 1, 1], (0, 0, 2, 0, 5)),
    ("new_axis_and_shrink", [0, 1, 2], [0, 2, 4], [1, 1, 1], (0, 0, 0, 1, 2)),
    ("shrink_and_new_axis_at_once", [1, 1], [2, 2], [1, 1], (0, 0, 0, 1, 1)),
    ("all_masks", [1, 0, 9, 0, 5], [2, 0, 9, 9, 0], [1, 1, 1, 1, -1], (16, 24, 2, 4, 1)),
]
REFUSED_STRIDED = [
    ("stride_0", [0], [3], [0], (0, 0, 0, 0, 0)),
    ("two_ellipses", [0, 0], [0, 0], [1, 1], (0, 0, 3, 0, 0)),
    ("too_many", [0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1], (0, 0, 0, 0, 0)),
    ("shrink_beyond", [4], [5], [1], (0, 0, 0, 0, 1)),
    ("shrink_before", [-5], [0], [1], (0, 0, 0, 0, 1)),
    ("shrink_backward", [1], [0], [-1], (0, 0, 0, 0, 1)),
    ("lengths", [0, 0], [1], [1], (0, 0, 0, 0, 0)),
]


def masks(values):
    return dict(zip(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"),
                    values))


def strided():
    x = draw("strided", [4, 5, 6])
    for label, begin, end, strides, values in STRIDED:
        yield from move("StridedSlice", label, x, np.array(begin, I), np.array(end, I),
                        np.array(strides, I), **masks(values))
    random = rng("strided")
    for i in range(40):
        spec = [int(n) for n in random.integers(1, 5, 1)][0]
        values = [int(v) for v in random.integers(0, 1 << spec, 5)]
        values[2] = (0, 0, 1, 2)[int(random.integers(0, 4))] & ((1 << spec) - 1)
        strides = [int(s) for s in random.choice([1, 1, 2, -1, -2], spec)]
        begin = [int(b) for b in random.integers(-4, 4, spec)]
        end = [int(e) for e in random.integers(-6, 7, spec)]
        # A shrunk axis has to go forward.
        strides = [1 if values[4] >> k & 1 else s for k, s in enumerate(strides)]
        yield op_case("StridedSlice", [x, np.array(begin, I), np.array(end, I),
                                       np.array(strides, I)], f"StridedSlice/random_{i}",
                      const=(1, 2, 3) if i % 2 else (), static="known" if i % 3 else "nothing",
                      precision=EXACT, **masks(values))
    for label, y in [("vector", draw("v", [7])), ("empty", np.zeros([0], F)),
                     ("double", draw("d", [5], dtype=D)), ("int32", draw("i", [5], -9, 9, I)),
                     ("int64", draw("l", [5], -9, 9, L)), ("bool", draw("b", [5], dtype=bool)),
                     ("text", text("a", "bb", "", "dddd"))]:
        yield from move("StridedSlice", label, y, [-3], [9], [1], dtype=L)
    yield from move("StridedSlice", "rank_5", draw("r5", [2, 3, 1, 2, 2]), [0, 2, 0], [2, 0, 2],
                    [1, -1, 1], ellipsis_mask=4)
    for label, begin, end, strides, values in REFUSED_STRIDED:
        yield from refused("StridedSlice", label, x, begin, end, strides, **masks(values))

    for label, begin, end, strides, values in STRIDED:
        taken = np.zeros([4, 5, 6])
        import tensorflow as tf  # the shape of the slice is TensorFlow's to say
        with tf.Graph().as_default():
            shape = tf.raw_ops.StridedSlice(input=taken, begin=np.array(begin, I),
                                            end=np.array(end, I), strides=np.array(strides, I),
                                            **masks(values)).shape.as_list()
        dy = draw("dy" + label, shape)
        operands = [np.array(o, I) for o in ([4, 5, 6], begin, end, strides)]
        for static, const in [("known", (0, 1, 2, 3)), ("nothing", ())]:
            yield op_case("StridedSliceGrad", [*operands, dy], f"StridedSliceGrad/{label}_{static}",
                          const=const, static=static, precision=EXACT, **masks(values))
    yield op_case("StridedSliceGrad", [np.array([4], I), np.array([0], I), np.array([2], I),
                                       np.array([1], I), draw("g", [3])],
                  "StridedSliceGrad/refused_shape")


def gathers():
    for label, shape, ids, axis, batch in [
            ("vector", [5], [3, 0, 3], 0, 0), ("rows", [4, 3], [2, 2, 0], 0, 0),
            ("columns", [2, 4], [3, 1], 1, 0), ("scalar", [4, 2], 1, 0, 0),
            ("matrix", [4, 2], [[0, 1], [3, 0]], 0, 0), ("negative_axis", [2, 4], [1, 0], -1, 0),
            ("rank_3", [2, 3, 4], [2, 0], 1, 0), ("empty_ids", [3, 2], np.zeros([0]), 0, 0),
            ("empty_rows", [3, 0], [1, 2], 0, 0), ("batch", [2, 3, 2], [[1, 0], [2, 2]], 1, 1),
            ("batch_inner", [2, 3, 4], [[1, 0], [3, 2]], 2, 1), ("size_1", [1], [0], 0, 0),
            ("batch_negative", [2, 3, 2], [[1, 0], [2, 2]], -2, -1),
            ("rank_5", [2, 1, 3, 2, 2], [[1, 0]], 3, 0)]:
        params = draw("ga" + label, shape)
        for static, dtype, const in [("known", I, (2,)), ("extents", L, (2,)), ("nothing", I, ())]:
            yield op_case("GatherV2", [params, np.array(ids, dtype), np.array(axis, I)],
                          f"GatherV2/{label}_{static}", const=const, static=static, batch_dims=batch,
                          precision=EXACT)
    for dtype in (D, I, L, bool):
        yield op_case("GatherV2", [draw("g", [4], -9, 9, dtype), np.array([1, 3], I), np.int64(0)],
                      f"GatherV2/{np.dtype(dtype).name}", const=(2,), precision=EXACT)
    yield op_case("GatherV2", [text("a", "bb", ""), np.array([1, 0, 2], I), np.int32(0)],
                  "GatherV2/text", const=(2,))
    for label, ids, axis in [("beyond", [0, 4], 0), ("negative", [-1], 0), ("axis", [0], 2)]:
        for static, const in [("known", (2,)), ("nothing", ())]:
            yield op_case("GatherV2", [draw("gr", [4, 2]), np.array(ids, I), np.int32(axis)],
                          f"GatherV2/refused_{label}_{static}", const=const, static=static)


def scatters():
    for label, ids, updates, shape in [
            ("vector", [[1], [3]], [2], [5]), ("twice", [[1], [1], [0]], [3], [4]),
            ("rows", [[2], [0]], [2, 3], [4, 3]), ("elements", [[0, 1], [2, 2]], [2], [3, 3]),
            ("batch", [[[0], [1]], [[1], [0]]], [2, 2], [3]), ("empty", np.zeros([0, 1]), [0], [3]),
            ("rank_5", [[1, 0, 1]], [1, 2, 2], [2, 1, 2, 2, 2]), ("size_1", [[0]], [1], [1]),
            ("slices", [[1], [0]], [2, 2, 3], [3, 2, 3])]:
        for static, dtype, const in [("known", I, (2,)), ("nothing", L, ())]:
            yield op_case("ScatterNd", [np.array(ids, dtype), draw("sc" + label, updates),
                                        np.array(shape, dtype)], f"ScatterNd/{label}_{static}",
                          const=const, static=static, precision=ACCUMULATED)
    for dtype in (D, I, L):
        yield op_case("ScatterNd", [np.array([[0], [2], [0]], I), draw("s", [3], -9, 9, dtype),
                                    np.array([4], I)], f"ScatterNd/{dtype.__name__}",
                      precision=ACCUMULATED)
    for label, ids, updates, shape in [("beyond", [[3]], [1], [3]), ("negative", [[-1]], [1], [3]),
                                       ("updates", [[1]], [2], [3]), ("depth", [[0, 0]], [1], [3]),
                                       ("shape", [[0]], [1], [-3]), ("empty_output", [[0]], [1], [0])]:
        for static in ("known", "nothing"):
            yield op_case("ScatterNd", [np.array(ids, I), draw("scr", updates), np.array(shape, I)],
                          f"ScatterNd/refused_{label}_{static}", static=static)

    for label, shape, ids, n in [("vector", [5], [0, 2, 0, 1, 2], 3), ("unused", [3], [4, 0, 4], 6),
                                 ("rows", [3, 2], [1, 0, 1], 2), ("dropped", [4], [0, -1, 1, -5], 2),
                                 ("matrix_of_ids", [2, 2, 3], [[0, 1], [1, 0]], 2),
                                 ("empty", [0, 2], np.zeros([0]), 3), ("scalar", [], 1, 2),
                                 ("size_1", [1], [0], 1), ("none", [2], [-1, -1], 0),
                                 ("rank_5", [2, 1, 2, 1, 2], [1, 0], 2)]:
        for static, dtype, const in [("known", I, (2,)), ("nothing", L, ())]:
            yield op_case("UnsortedSegmentSum", [draw("us" + label, shape), np.array(ids, dtype),
                                                 np.array(n, dtype)],
                          f"UnsortedSegmentSum/{label}_{static}", const=const, static=static,
                          precision=ACCUMULATED)
    for dtype in (D, I, L):
        yield op_case("UnsortedSegmentSum", [draw("u", [4], -9, 9, dtype),
                                             np.array([1, 0, 1, 1], I), np.int32(2)],
                      f"UnsortedSegmentSum/{dtype.__name__}", precision=ACCUMULATED)
    for label, shape, ids, n in [("beyond", [2], [0, 2], 2), ("ids", [3], [0, 1], 2),
                                 ("number", [1], [0], -1)]:
        for static in ("known", "nothing"):
            yield op_case("UnsortedSegmentSum", [draw("ur", shape), np.array(ids, I), np.int32(n)],
                          f"UnsortedSegmentSum/refused_{label}_{static}", static=static)

    for label, ids, shapes in [("in_order", [[0, 1], [2, 3]], [[2], [2]]),
                               ("mixed", [[3, 1], [0, 2]], [[2, 2], [2, 2]]),
                               ("scalars", [0, 1], [[], []]), ("one", [[1, 0]], [[2, 3]]),
                               ("later_wins", [[0, 1], [1, 0]], [[2], [2]]),
                               ("ranks", [1, [0, 2], [[3], [4]]], [[2], [2, 2], [2, 1, 2]]),
                               ("empty_part", [np.zeros([0]), [0, 1]], [[0, 2], [2, 2]]),
                               ("empty", [np.zeros([0])], [[0, 3]])]:
        for static in ("known", "nothing"):
            yield op_case("DynamicStitch", [[np.array(i, I) for i in ids],
                                            [draw(f"ds{label}{k}", s) for k, s in enumerate(shapes)]],
                          f"DynamicStitch/{label}_{static}", static=static, precision=EXACT,
                          gradient=label != "later_wins")
    for dtype in (D, I, L):
        yield op_case("DynamicStitch", [[np.array([1], I), np.array([0], I)],
                                        [draw("d0", [1], -9, 9, dtype),
                                         draw("d1", [1], -9, 9, dtype)]],
                      f"DynamicStitch/{dtype.__name__}", precision=EXACT)
    for label, ids, shapes in [("negative", [[0, -1]], [[2]]), ("shapes", [[0], [1]], [[1, 2], [1, 3]]),
                               ("lengths", [[0, 1]], [[3]])]:
        for static in ("known", "nothing"):
            yield op_case("DynamicStitch", [[np.array(i, I) for i in ids],
                                            [draw(f"dr{k}", s) for k, s in enumerate(shapes)]],
                          f"DynamicStitch/refused_{label}_{static}", static=static)


def sets_and_orders():
    for label, ids, depth, axis in [("vector", [0, 2, 1], 3, -1), ("beyond", [0, 5, -1], 3, -1),
                                    ("first_axis", [0, 2], 3, 0), ("scalar", 1, 3, -1),
                                    ("matrix", [[0, 1], [2, 0]], 3, 1), ("depth_0", [0, 1], 0, -1),
                                    ("empty", np.zeros([0]), 2, -1), ("depth_1", [0, 1], 1, -1),
                                    ("rank_5", np.zeros([1, 2, 1, 2]), 2, 2)]:
        for static, dtype, const in [("known", I, (1,)), ("nothing", L, ())]:
            yield op_case("OneHot", [np.array(ids, dtype), np.int32(depth), np.float32(1.5),
                                     np.float32(-0.5)], f"OneHot/{label}_{static}", const=const,
                          static=static, axis=axis, precision=EXACT, gradient=False)
    for dtype in (D, I, L, bool):
        yield op_case("OneHot", [np.array([1, 0], I), np.int32(2), np.array(1, dtype),
                                 np.array(0, dtype)], f"OneHot/{np.dtype(dtype).name}",
                      precision=EXACT, gradient=False)
    for label, depth, axis, on in [("depth", -1, -1, 1), ("axis", 2, 3, 1), ("value", 2, -1, [1, 2])]:
        yield op_case("OneHot", [np.array([1, 0], I), np.int32(depth), np.array(on, F),
                                 np.float32(0)], f"OneHot/refused_{label}", axis=axis,
                      static="nothing")

    for label, x in [("some", [4, 1, 4, 2, 1]), ("same", [3, 3]), ("none", []), ("one", [7])]:
        for dtype in (I, L, F, D):
            for out in (I, L):
                yield op_case("Unique", [np.array(x, dtype)], static="nothing" if out == L else "known",
                              name=f"Unique/{label}_{np.dtype(dtype).name}_{np.dtype(out).name}",
                              out_idx=out, gradient=False)
    yield op_case("Unique", [text("a", "b", "a", "")], "Unique/text")
    yield op_case("Unique", [np.array([0.0, -0.0, 1], F)], "Unique/zeros", gradient=False)
    yield op_case("Unique", [np.array([[1, 2]], I)], "Unique/refused_matrix")
    for label, x, y in [("some", [1, 2, 3, 4, 2], [2, 5]), ("all", [1, 2], [2, 1]), ("none", [], [1]),
                        ("nothing_taken", [3, 1], []), ("twice", [7, 7, 1], [1])]:
        for dtype in (I, L, F, D):
            for out in (I, L):
                yield op_case("ListDiff", [np.array(x, dtype), np.array(y, dtype)], out_idx=out,
                              static="nothing" if out == L else "known", gradient=False,
                              name=f"ListDiff/{label}_{np.dtype(dtype).name}_{np.dtype(out).name}")
    yield op_case("ListDiff", [text("a", "b", "c"), text("b")], "ListDiff/text")
    yield op_case("ListDiff", [np.array([[1, 2]], I), np.array([1], I)], "ListDiff/refused_matrix",
                  static="nothing")

    for label, x in [("vector", [True, False, True]), ("none", [False, False]), ("refused_scalar", True),
                     ("refused_scalar_false", False), ("matrix", [[True, False], [True, True]]),
                     ("empty", np.zeros([0, 2])), ("rank_3", np.arange(12).reshape(2, 3, 2) % 5 == 0),
                     ("rank_5", np.arange(16).reshape(2, 2, 1, 2, 2) % 3 == 0)]:
        for static in ["known"] + STATIC:
            yield op_case("Where", [np.array(x, bool)], f"Where/{label}_{static}", static=static)
    yield op_case("Where", [np.array([0, -0.0, 1, np.nan, np.inf], F)], "Where/float")
    for dtype in (D, I, L):
        yield op_case("Where", [np.array([[0, 2], [-1, 0]], dtype)], f"Where/{dtype.__name__}")

    for label, x, k in [("vector", distinct("tk1", [7]), 3), ("rows", distinct("tk2", [3, 5]), 2),
                        ("all", distinct("tk3", [4]), 4), ("none", distinct("tk4", [4]), 0),
                        ("one", distinct("tk5", [2, 3]), 1), ("size_1", distinct("tk6", [1]), 1),
                        ("ties", np.array([1, 3, 3, 2, 3], F), 3), ("equal", np.full([5], 2, F), 3),
                        ("empty", np.zeros([0, 3], F), 2), ("rank_3", distinct("tk7", [2, 2, 4]), 2),
                        ("rank_5", distinct("tk8", [1, 2, 1, 2, 3]), 2),
                        ("infinities", np.array([1, -np.inf, np.inf, 0, np.inf], F), 4),
                        ("zeros", np.array([0.0, -0.0, 0.0], F), 2),
                        ("double", distinct("tk9", [6], dtype=D), 3),
                        ("int32", np.array([5, -2, 5, 7], I), 3),
                        ("int64", np.array([5, -2, 2 ** 40, 7], L), 2)]:
        for static, const in [("known", (1,)), ("nothing", ())]:
            yield op_case("TopKV2", [x, np.int32(k)], f"TopKV2/{label}_{static}", const=const,
                          static=static, precision=EXACT)
    for label, shape, k in [("k", [3], 4), ("negative", [3], -1), ("scalar", [], 1)]:
        yield op_case("TopKV2", [distinct("tkr", shape), np.int32(k)], f"TopKV2/refused_{label}",
                      static="nothing")


FAMILIES = {"slices": slices, "strided_slices": strided, "gathers": gathers, "scatters": scatters,
            "sets_and_orders": sets_and_orders}
