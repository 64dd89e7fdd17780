"""Functions of two tensors that broadcast, choices between tensors."""

import numpy as np

from oracle import ELEMENTWISE, EXACT, op_case
from values import (BROADCASTS, D, F, I, L, STATIC, denormals, draw, extremes, specials, text,
                    zeros)

FLOATS, NUMBERS = (F, D), (F, D, I, L)
# op: (lowest x, highest x, lowest y, highest y, dtypes, precision)
BINARY = {
    "Add": (-2, 2, -2, 2, NUMBERS, EXACT), "AddV2": (-2, 2, -2, 2, NUMBERS, EXACT),
    "Sub": (-2, 2, -2, 2, NUMBERS, EXACT), "Mul": (-2, 2, -2, 2, NUMBERS, EXACT),
    "Div": (-2, 2, 0.5, 3, FLOATS, ELEMENTWISE), "RealDiv": (-2, 2, 0.5, 3, FLOATS, ELEMENTWISE),
    "DivNoNan": (-2, 2, 0.5, 3, FLOATS, ELEMENTWISE),
    "FloorDiv": (-9, 9, 0.7, 3, NUMBERS, EXACT), "FloorMod": (-9, 9, 0.7, 3, NUMBERS, ELEMENTWISE),
    "Maximum": (-2, 2, -2, 2, NUMBERS, EXACT), "Minimum": (-2, 2, -2, 2, NUMBERS, EXACT),
    "SquaredDifference": (-2, 2, -2, 2, NUMBERS, ELEMENTWISE),
    "Pow": (0.2, 3, -2, 2, FLOATS, ELEMENTWISE),
    "Equal": (-2, 2, -2, 2, NUMBERS, EXACT), "NotEqual": (-2, 2, -2, 2, NUMBERS, EXACT),
    "Less": (-2, 2, -2, 2, NUMBERS, EXACT), "LessEqual": (-2, 2, -2, 2, NUMBERS, EXACT),
    "Greater": (-2, 2, -2, 2, NUMBERS, EXACT), "GreaterEqual": (-2, 2, -2, 2, NUMBERS, EXACT),
}
# Gradients of these multiply infinities and zeros: what comes of it is checked for ordinary values.
ORDINARY_GRADIENT = ["Pow"]


def pairs(values):
    """All pairs of a list, as a column against a row."""
    return values.reshape(-1, 1), values.reshape(1, -1)


def binary():
    for op, (low, high, low_y, high_y, dtypes, precision) in BINARY.items():
        def case(label, x, y, **more):
            return op_case(op, [x, y], f"{op}/{label}", precision=precision, **more)

        for label, shape_x, shape_y in BROADCASTS:
            yield case(label, draw(op + label, shape_x, low, high),
                       draw(label + op, shape_y, low_y, high_y))
        for static in STATIC:
            x = draw(op + static, [3, 1], low, high)
            yield case(f"static_{static}", x, draw(static + op, [1, 4], low_y, high_y),
                       static=static)
            # Of equal static shapes, which are not known to be so.
            yield case(f"same_{static}", x, draw("same" + op, [3, 1], low_y, high_y), static=static)
        yield case("double", draw(op, [2, 3], low, high, D), draw("y" + op, [3], low_y, high_y, D))
        yield case("ties", np.array([1, 2, 2, -1, 0.5], F), np.array([1, 2, 3, -1, 0.5], F))
        yield case("specials", *pairs(specials()), gradient=op not in ORDINARY_GRADIENT)
        yield case("specials_double", *pairs(specials(D)), gradient=False)
        yield case("zeros", *pairs(zeros()), gradient=op not in ORDINARY_GRADIENT)
        yield case("denormals", denormals(), np.full([5], 2, F), gradient=False)
        for dtype in [d for d in dtypes if d in (I, L)]:
            yield case(dtype.__name__, draw(op, [2, 3], -9, 9, dtype),
                       draw("y" + op, [3], 1, 4, dtype))
            x, y = pairs(extremes(dtype))
            if op in ("FloorDiv", "FloorMod"):  # the smallest by -1 has no answer
                x, y = x[1:], np.array([[-3, -1, 2, 5]], dtype)
            yield case(f"{dtype.__name__}_extremes", x, y)
        yield case("refused_shapes", draw("a", [2, 3]), draw("b", [2, 4]))
        yield case("refused_shapes_in_the_step", draw("a", [2, 3]), draw("b", [2]),
                   static="nothing")
    for op in ("FloorDiv", "FloorMod"):
        for dtype in (I, L):
            for label, y in [("scalar", 0), ("element", [1, 0, 2])]:
                yield op_case(op, [np.array([1, 2, 3], dtype), np.array(y, dtype)],
                              f"{op}/refused_{dtype.__name__}_division_by_zero_{label}")
    for dtype in (I, L):
        for op in ("Div",):
            yield op_case(op, [np.array([7, -7, 7, -7, 0], dtype),
                               np.array([2, 2, -2, -2, 3], dtype)], f"{op}/{dtype.__name__}")
        yield op_case("Div", [np.array([1, 2], dtype), np.array([1, 0], dtype)],
                      f"Div/refused_{dtype.__name__}_division_by_zero")
        yield op_case("Pow", [np.array([2, -3, 0, 1, 5], dtype), np.array([10, 3, 0, 7, 1], dtype)],
                      f"Pow/{dtype.__name__}")
        yield op_case("Pow", [np.array([2, 3], dtype), np.array([1, -1], dtype)],
                      f"Pow/refused_{dtype.__name__}_negative_exponent")
    negative = np.array([-2, -2, -0.5, -3, 0, 0, 0], F)
    yield op_case("Pow", [negative, np.array([2, 3, -1, 0.5, 0, 2, -1], F)], "Pow/negative_base",
                  gradient=False)
    yield op_case("Pow", [np.array([0, 0, 2, 0], F), np.array([2, 0, 0, 1], F)],
                  "Pow/gradient_at_zero")
    yield op_case("DivNoNan", [draw("dnn", [4]), np.array([0, 1, -0.0, 2], F)],
                  "DivNoNan/zero_divisors")
    for label, x, y in [("text", text("a", "b", ""), text("a", "c", "")),
                        ("text_scalar", text("a", "b", ""), "b"),
                        ("bool", np.array([True, False, True]), np.array([True, True, False]))]:
        for op in ("Equal", "NotEqual"):
            yield op_case(op, [x, y], f"{op}/{label}")
    for op in ("Equal", "NotEqual"):
        yield op_case(op, [draw("i1", [2]), draw("i2", [3])], f"{op}/incompatible_is_one_answer",
                      static="nothing", incompatible_shape_error=False)
        yield op_case(op, [draw("i3", [2, 1]), draw("i4", [3])], f"{op}/compatible_all_the_same",
                      incompatible_shape_error=False)


def logic():
    for op in ("LogicalAnd", "LogicalOr"):
        for label, shape_x, shape_y in BROADCASTS:
            yield op_case(op, [draw(op + label, shape_x, dtype=bool),
                               draw(label + op, shape_y, dtype=bool)], f"{op}/{label}")
        yield op_case(op, list(pairs(np.array([False, True]))), f"{op}/nothing_known",
                      static="nothing")
    for label, shape in [("scalar", []), ("empty", [0, 2]), ("rank_3", [2, 3, 2]), ("row", [5])]:
        yield op_case("LogicalNot", [draw("not" + label, shape, dtype=bool)], f"LogicalNot/{label}")
        yield op_case("LogicalNot", [draw("not" + label, shape, dtype=bool)],
                      f"LogicalNot/{label}_nothing_known", static="nothing")


def choices():
    def select(op, label, c, x, y, **more):
        return op_case(op, [c, x, y], f"{op}/{label}", precision=EXACT, **more)

    flags = np.array([True, False, True])
    for op in ("Select", "SelectV2"):
        for label, shape in [("scalar", []), ("rank_2", [2, 3]), ("rank_3", [2, 1, 3]),
                             ("empty", [0, 3]), ("rank_5", [1, 2, 1, 2, 2])]:
            c = draw("c" + label, shape, dtype=bool)
            for static in ["known"] + STATIC:
                yield select(op, f"{label}_{static}", c, draw("x" + label, shape),
                             draw("y" + label, shape), static=static)
        yield select(op, "scalar_condition", np.array(True), draw("s1", [2, 3]),
                     draw("s2", [2, 3]))
        yield select(op, "specials", np.arange(16) % 2 == 0, specials(), specials()[::-1])
        for dtype in (D, I, L):
            yield select(op, dtype.__name__, flags, draw("1", [3], -9, 9, dtype),
                         draw("2", [3], -9, 9, dtype))
        yield select(op, "bool", flags, flags, ~flags)
        yield select(op, "text", flags, text("a", "b", "c"), text("x", "y", "z"))
        yield select(op, "refused_shapes", flags, draw("r", [3, 2]), draw("q", [3, 3]),
                     static="nothing")
    yield select("Select", "rows", flags, draw("r1", [3, 2]), draw("r2", [3, 2]))
    yield select("Select", "rows_nothing_known", flags, draw("r1", [3, 2]), draw("r2", [3, 2]),
                 static="nothing")
    yield select("Select", "rows_of_rank_3", flags, draw("r3", [3, 2, 2]), draw("r4", [3, 2, 2]))
    yield select("Select", "refused_rows", flags, draw("r5", [2, 3]), draw("r6", [2, 3]),
                 static="nothing")
    for label, c, x, y in [("row", [3], [2, 3], [2, 3]), ("column", [2, 1], [2, 3], [3]),
                           ("all", [2, 1, 1], [3, 1], [1, 4]), ("value_scalars", [4], [], []),
                           ("empty_side", [1], [0, 3], [1, 3])]:
        for static in ["known", "nothing"]:
            yield select("SelectV2", f"broadcast_{label}_{static}",
                         draw("c" + label, c, dtype=bool), draw("x" + label, x),
                         draw("y" + label, y), static=static)

    def clip(label, x, low, high, **more):
        return op_case("ClipByValue", [x, low, high], f"ClipByValue/{label}", precision=EXACT, **more)

    for label, shape in [("scalar", []), ("empty", [0]), ("rank_2", [3, 4]), ("rank_3", [2, 3, 2])]:
        x = draw("clip" + label, shape)
        yield clip(label, x, np.float32(-0.7), np.float32(0.9))
        yield clip(f"{label}_nothing_known", x, np.float32(-0.7), np.float32(0.9), static="nothing")
        yield clip(f"{label}_elementwise", x, draw("lo" + label, shape, -1.5, -0.2),
                   draw("hi" + label, shape, 0.2, 1.5))
    yield clip("at_the_bounds", np.array([-1, 1, 0, -1.5, 1.5], F), np.float32(-1), np.float32(1))
    yield clip("specials", specials(), np.float32(-1), np.float32(1))
    yield clip("crossed_bounds", draw("crossed", [5]), np.float32(1), np.float32(-1))
    yield clip("double", draw("clipd", [5], dtype=D), np.float64(-0.3), np.float64(0.3))
    for dtype in (I, L):
        yield clip(dtype.__name__, draw("clipi", [7], -9, 9, dtype), dtype(-3), dtype(4))
    yield clip("refused_shapes", draw("clipr", [3]), draw("lo", [2]), np.float32(1),
               static="nothing")


FAMILIES = {"binary": binary, "logic": logic, "choices": choices}
