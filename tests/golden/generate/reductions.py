"""Reductions, positions of extremes, running sums, products of matrices, sums of many."""

import numpy as np

from oracle import ACCUMULATED, EXACT, op_case
from values import D, F, I, L, STATIC, denormals, distinct, draw, specials

# (name, shape, axes)
AXES = [("scalar", [], []), ("scalar_no_axes", [], np.zeros([0], I)), ("vector", [5], [0]),
        ("rows", [3, 4], [0]), ("columns", [3, 4], [1]), ("all", [3, 4], [0, 1]),
        ("none", [2, 3], []), ("negative", [2, 3, 4], [-1]), ("middle", [2, 3, 4], [1]),
        ("outer", [2, 3, 4], [0, 2]), ("unordered", [2, 3, 4], [2, 0]),
        ("rank_5", [2, 1, 3, 2, 2], [1, 3, 4]), ("size_1", [1], [0]), ("size_1_kept", [1, 3], [0]),
        ("empty", [0, 3], [0]), ("empty_kept", [0, 3], [1]), ("empty_all", [2, 0], [0, 1]),
        ("wide", [2, 300], [1]), ("tall", [300, 2], [0]), ("axis_scalar", [3, 2], 1)]


def reduce(op, name, x, axes, const=True, **more):
    axes = np.asarray(axes, more.pop("axes_dtype", I))
    return op_case(op, [x, axes], f"{op}/{name}", const=(1,) if const else (), **more)


def reductions():
    for op in ("Sum", "Mean", "Max", "Min", "Prod"):
        choosing = op in ("Max", "Min")
        precision = EXACT if choosing else ACCUMULATED
        make = distinct if choosing else draw

        def data(label, shape, dtype=F):
            low, high = (0.5, 1.5) if op == "Prod" and dtype in (F, D) else (-2, 2)
            return make(op + label, shape, low, high, dtype)

        def case(label, *args, **more):
            return reduce(op, label, *args, precision=precision, **more)

        for label, shape, axes in AXES:
            yield case(label, data(label, shape), axes)
            yield case(f"{label}_keep_dims", data(label, shape), axes, keep_dims=True)
            yield case(f"{label}_fed_axes", data(label, shape), axes, const=False, static="nothing")
        for static in STATIC:
            yield case(f"static_{static}", data(static, [2, 3, 4]), [1], static=static)
        yield case("double", data("d", [3, 4], D), [1])
        yield case("axes_int64", data("l", [3, 4]), [0], axes_dtype=L)
        yield case("specials_all", specials(), [0])
        yield case("specials_each", specials().reshape(8, 2), [1])
        yield case("infinities", np.array([[np.inf, 1], [np.inf, -np.inf], [-np.inf, 2]], F), [1])
        yield case("nan_first_and_last", np.array([[np.nan, 1, 2], [1, 2, np.nan]], F), [1])
        yield case("denormals", denormals(), [0], gradient=False)
        yield case("ties", np.array([[1, 3, 3, 2], [2, 2, 2, 2], [-1, -1, 0, 0]], F), [1])
        yield case("ties_all", np.array([[1, 3, 3], [3, 1, 1]], F), [0, 1])
        yield case("zeros", np.array([[0, 2, 3], [0, 0, 5], [1, 2, 4]], F), [1])
        yield case("signed_zeros", np.array([[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0]], F), [1],
                   any_zero=True, gradient=False)
        for dtype in (I, L):
            x = draw(op, [3, 4], -9, 9, dtype)
            yield case(dtype.__name__, x, [1])
            yield case(f"{dtype.__name__}_all", x, [0, 1], keep_dims=True)
            yield case(f"{dtype.__name__}_empty", x[:0], [0])
            info = np.iinfo(dtype)
            yield case(f"{dtype.__name__}_extremes", np.array([info.max, info.min, 1], dtype), [0])
        yield case("refused_axis", data("r", [2, 3]), [2])
        yield case("refused_negative_axis", data("r", [2, 3]), [-3], const=False)
        yield case("refused_axis_twice", data("r", [2, 3]), [1, 1])
        yield case("refused_axis_twice_fed", data("r", [2, 3]), [1, -1], const=False)


def truths():
    for op in ("All", "Any"):
        for label, shape, axes in AXES:
            if label in ("wide", "tall"):
                continue
            x = draw(op + label, shape, dtype=bool)
            yield reduce(op, label, x, axes)
            yield reduce(op, f"{label}_kept_fed", x, axes, const=False, static="nothing",
                         keep_dims=True)
        yield reduce(op, "constant_true", np.ones([2, 3], bool), [1])
        yield reduce(op, "constant_false", np.zeros([2, 3], bool), [1])
        yield reduce(op, "refused_axis", np.ones([2, 3], bool), [2])


def extremes():
    for op in ("ArgMax", "ArgMin"):
        def case(label, x, axis, const=True, **more):
            return op_case(op, [x, np.asarray(axis, more.pop("axis_dtype", I))], f"{op}/{label}",
                           const=(1,) if const else (), **more)

        for label, shape, axis in [("vector", [7], 0), ("rows", [3, 4], 0), ("columns", [3, 4], 1),
                                   ("negative", [2, 3, 4], -2), ("rank_5", [2, 1, 3, 2, 2], 2),
                                   ("size_1", [1], 0), ("empty_result", [0, 3], 1),
                                   ("wide", [2, 300], 1), ("rank_3", [2, 3, 4], 0)]:
            yield case(label, distinct(op + label, shape), axis)
            yield case(f"{label}_fed", distinct(op + label, shape), axis, const=False,
                       static="nothing", output_type=I)
        yield case("ties", np.array([[1, 3, 3], [2, 2, 2], [0, -0.0, 0]], F), 1)
        yield case("infinities", np.array([[1, np.inf, np.inf], [-np.inf, 0, -np.inf]], F), 1)
        yield case("nan_last", np.array([[1, 3, np.nan], [3, 1, np.nan]], F), 1)
        yield case("nan_middle", np.array([[1, np.nan, 3], [3, np.nan, 1]], F), 1)
        yield case("nan_first", np.array([[np.nan, 1, 3], [np.nan, 3, 1]], F), 1)
        for dtype in (D, I, L):
            yield case(dtype.__name__, draw(op, [3, 5], -9, 9, dtype), 1)
        yield case("axis_int64", distinct(op, [3, 4]), 0, axis_dtype=L)
        yield case("bool", np.array([[True, False, True], [False, False, True]]), 1)
        yield case("refused_axis", distinct(op, [3, 4]), 2)
        yield case("refused_axis_fed", distinct(op, [3, 4]), -3, const=False)
        yield case("refused_scalar", np.float32(1), 0, static="nothing")
        yield case("refused_empty", np.zeros([2, 0], F), 1)


def scans():
    for op in ("Cumsum", "Cumprod"):
        def case(label, x, axis, const=True, **more):
            return op_case(op, [x, np.asarray(axis, more.pop("axis_dtype", I))], f"{op}/{label}",
                           const=(1,) if const else (), precision=ACCUMULATED, **more)

        for label, shape, axis in [("vector", [7], 0), ("rows", [3, 4], 0), ("columns", [3, 4], 1),
                                   ("negative", [2, 3, 4], -2), ("rank_5", [2, 1, 3, 2, 2], 2),
                                   ("size_1", [1], 0), ("empty", [0, 3], 0), ("empty_1", [3, 0], 0)]:
            x = draw(op + label, shape, 0.5, 1.75)
            for exclusive in (False, True):
                for reverse in (False, True):
                    flags = "_exclusive" * exclusive + "_reverse" * reverse
                    yield case(label + flags, x, axis, exclusive=exclusive, reverse=reverse)
            yield case(f"{label}_fed", x, axis, const=False, static="nothing")
        for dtype in (D, I, L):
            yield case(dtype.__name__, draw(op, [3, 4], 1, 4, dtype), 1, axis_dtype=L)
        yield case("infinities", np.array([1, np.inf, 2, -np.inf, 3], F), 0, gradient=False)
        yield case("nan", np.array([1, np.nan, 2], F), 0, gradient=False)
        yield case("zero", np.array([1, 2, 0, 3, 4], F), 0, gradient=op == "Cumsum")
        yield case("refused_axis", draw(op, [3, 4]), 2)
        yield case("refused_axis_fed", draw(op, [3, 4]), -3, const=False)


def products():
    def matmul(label, a, b, **more):
        return op_case("MatMul", [a, b], f"MatMul/{label}", precision=ACCUMULATED, **more)

    for label, m, k, n in [("small", 2, 3, 4), ("size_1", 1, 1, 1), ("row", 1, 5, 4),
                           ("column", 4, 5, 1), ("inner_1", 3, 1, 4), ("empty_rows", 0, 3, 2),
                           ("empty_columns", 2, 3, 0), ("empty_inner", 2, 0, 3),
                           ("wide", 7, 33, 17)]:
        for ta in (False, True):
            for tb in (False, True):
                a = draw(label + "a", [k, m] if ta else [m, k])
                b = draw(label + "b", [n, k] if tb else [k, n])
                yield matmul(label + "_ta" * ta + "_tb" * tb, a, b, transpose_a=ta, transpose_b=tb)
    for static in STATIC:
        yield matmul(f"static_{static}", draw("sa", [2, 3]), draw("sb", [3, 2]), static=static)
    for dtype in (D, I, L):
        yield matmul(dtype.__name__, draw("da", [3, 4], -9, 9, dtype),
                     draw("db", [4, 2], -9, 9, dtype))
    yield matmul("specials", np.array([[np.inf, 1, 0], [np.nan, 1, 2], [1, 2, 3]], F),
                 np.array([[1, 0], [2, -np.inf], [3, 4]], F), gradient=False)
    yield matmul("refused_inner", draw("ra", [2, 3]), draw("rb", [2, 3]))
    yield matmul("refused_inner_in_the_step", draw("ra", [2, 3]), draw("rb", [2, 3]),
                 static="nothing")
    yield matmul("refused_rank", draw("ra", [2, 3, 1]), draw("rb", [3, 2]), static="nothing")

    def batch(label, a, b, **more):
        return op_case("BatchMatMulV2", [a, b], f"BatchMatMulV2/{label}", precision=ACCUMULATED,
                       **more)

    for label, a, b in [("rank_2", [2, 3], [3, 4]), ("rank_3", [2, 2, 3], [2, 3, 4]),
                        ("rank_5", [2, 1, 2, 2, 3], [1, 3, 2, 3, 2]),
                        ("broadcast_left", [2, 3], [5, 3, 4]), ("broadcast_right", [5, 2, 3], [3, 4]),
                        ("broadcast_both", [2, 1, 2, 3], [4, 3, 2]), ("size_1", [1, 1, 1], [1, 1, 1]),
                        ("empty_batch", [0, 2, 3], [0, 3, 4]), ("empty_rows", [2, 0, 3], [2, 3, 4]),
                        ("empty_inner", [2, 2, 0], [2, 0, 3]), ("one_of_batch", [1, 2, 3], [4, 3, 2])]:
        yield batch(label, draw(label + "a", a), draw(label + "b", b))
        yield batch(f"{label}_nothing_known", draw(label + "a", a), draw(label + "b", b),
                    static="nothing")
        adjoint = (np.swapaxes(draw(label + "a", a), -1, -2), np.swapaxes(draw(label + "b", b), -1, -2))
        yield batch(f"{label}_adj_x", adjoint[0], draw(label + "b", b), adj_x=True)
        yield batch(f"{label}_adj_y", draw(label + "a", a), adjoint[1], adj_y=True)
        yield batch(f"{label}_adj_both", *adjoint, adj_x=True, adj_y=True)
    for dtype in (D, I, L):
        yield batch(dtype.__name__, draw("ba", [2, 3, 4], -9, 9, dtype),
                    draw("bb", [4, 2], -9, 9, dtype))
    yield batch("refused_inner", draw("ra", [2, 2, 3]), draw("rb", [2, 2, 3]), static="nothing")
    yield batch("refused_batch", draw("ra", [2, 2, 3]), draw("rb", [3, 3, 2]), static="nothing")
    yield batch("refused_rank", draw("ra", [3]), draw("rb", [3, 2]), static="nothing")

    for label, shapes in [("one", [[2, 3]]), ("two", [[2, 3]] * 2), ("nine", [[2]] * 9),
                          ("scalars", [[]] * 3), ("empty", [[0, 2]] * 2),
                          ("rank_5", [[1, 2, 1, 2, 2]] * 3), ("rank_3", [[2, 3, 1]] * 4)]:
        values = [draw(f"{label}{i}", s) for i, s in enumerate(shapes)]
        yield op_case("AddN", [values], f"AddN/{label}", precision=ACCUMULATED)
        yield op_case("AddN", [values], f"AddN/{label}_nothing_known", precision=ACCUMULATED,
                      static="nothing")
    for dtype in (D, I, L):
        yield op_case("AddN", [[draw(f"n{i}", [3], -9, 9, dtype) for i in range(3)]],
                      f"AddN/{dtype.__name__}", precision=ACCUMULATED)
    yield op_case("AddN", [[specials(), np.roll(specials(), 3)]], "AddN/specials",
                  precision=ACCUMULATED)
    yield op_case("AddN", [[draw("r1", [2, 3]), draw("r2", [3])]], "AddN/refused_broadcast",
                  static="nothing")

    for label, shape in [("vector", [5]), ("scalar", []), ("empty", [0, 2]), ("rank_3", [2, 3, 2]),
                         ("rank_5", [2, 1, 2, 1, 3]), ("size_1", [1])]:
        yield op_case("L2Loss", [draw("l2" + label, shape)], f"L2Loss/{label}",
                      precision=ACCUMULATED)
        yield op_case("L2Loss", [draw("l2" + label, shape)], f"L2Loss/{label}_nothing_known",
                      precision=ACCUMULATED, static="nothing")
    yield op_case("L2Loss", [draw("l2d", [4], dtype=D)], "L2Loss/double", precision=ACCUMULATED)
    yield op_case("L2Loss", [specials()], "L2Loss/specials", precision=ACCUMULATED, gradient=False)


FAMILIES = {"reductions": reductions, "truths": truths, "extremes": extremes, "scans": scans,
            "products": products}
