"""Functions of one tensor, their gradient ops, and casts."""

import ml_dtypes
import numpy as np

from oracle import ELEMENTWISE, EXACT, op_case
from values import (D, F, I, L, SHAPES, STATIC, denormals, draw, extremes, specials, text,
                    zeros)

# op: (lowest, highest ordinary value, attributes, precision)
UNARY = {
    "Neg": (-2, 2, {}, EXACT), "Abs": (-2, 2, {}, EXACT), "Sign": (-2, 2, {}, EXACT),
    "Square": (-2, 2, {}, EXACT), "Sqrt": (0.1, 9, {}, ELEMENTWISE),
    "Rsqrt": (0.1, 9, {}, ELEMENTWISE), "Reciprocal": (0.2, 3, {}, ELEMENTWISE),
    "Exp": (-4, 4, {}, ELEMENTWISE), "Expm1": (-3, 3, {}, ELEMENTWISE),
    "Log": (0.1, 9, {}, ELEMENTWISE), "Log1p": (-0.9, 5, {}, ELEMENTWISE),
    "Tanh": (-1.5, 1.5, {}, ELEMENTWISE), "Sigmoid": (-6, 6, {}, ELEMENTWISE),
    "Relu": (-2, 2, {}, EXACT), "Relu6": (-3, 9, {}, EXACT),
    "LeakyRelu": (-2, 2, {"alpha": 0.3}, ELEMENTWISE), "Elu": (-3, 3, {}, ELEMENTWISE),
    "Softplus": (-5, 5, {}, ELEMENTWISE), "Erf": (-3, 3, {}, ELEMENTWISE),
    "IsFinite": (-2, 2, {}, EXACT), "IsNan": (-2, 2, {}, EXACT), "IsInf": (-2, 2, {}, EXACT),
    "Identity": (-2, 2, {}, EXACT), "StopGradient": (-2, 2, {}, EXACT),
    "ZerosLike": (-2, 2, {}, EXACT), "OnesLike": (-2, 2, {}, EXACT),
}
# A product with a mask, or a maximum, of which TensorFlow's vector and scalar forms differ in -0.
ANY_ZERO = ["Relu", "Relu6"]
INTEGERS = ["Neg", "Abs", "Sign", "Square", "Relu", "Relu6", "Identity", "StopGradient",
            "ZerosLike", "OnesLike"]


def unary():
    for op, (low, high, attrs, precision) in UNARY.items():
        def case(label, x, **more):
            return op_case(op, [x], f"{op}/{label}", precision=precision,
                           any_zero=op in ANY_ZERO, **attrs, **more)

        for label, shape in SHAPES:
            yield case(label, draw(op + label, shape, low, high))
        for static in STATIC:
            yield case(f"static_{static}", draw(op + static, [3, 5], low, high), static=static)
        yield case("double", draw(op + "double", [4, 5], low, high, D))
        yield case("specials", specials())
        yield case("specials_double", specials(D))
        yield case("zeros", zeros())
        yield case("denormals", denormals())
        for dtype in (I, L) if op in INTEGERS else ():
            yield case(f"{dtype.__name__}", draw(op, [2, 3], -9, 9, dtype))
            yield case(f"{dtype.__name__}_extremes", extremes(dtype)[1 if op == "Abs" else 0:])
    for label, alpha in [("alpha_0", 0.0), ("alpha_1", 1.0), ("alpha_2", 2.0),
                         ("alpha_negative", -0.5), ("alpha_default", 0.2)]:
        for values, x in [("", draw("leaky", [2, 5])), ("_specials", specials())]:
            yield op_case("LeakyRelu", [x], f"LeakyRelu/{label}{values}", alpha=alpha)


def identities():
    for op in ["PreventGradient"]:
        for label, shape in SHAPES:
            yield op_case(op, [draw(op + label, shape)], f"{op}/{label}", precision=EXACT,
                          gradient=False, message="as it is")
    for label, value in [("text", text("a", "", "long enough not to be inline")),
                         ("empty_text", text()), ("scalar_text", "x"),
                         ("bool", np.array([True, False]))]:
        yield op_case("Identity", [value], f"Identity/{label}")
    lists = {"one": [draw("in0", [3])], "two": [draw("in1", []), draw("in2", [2, 3])],
             "mixed": [draw("in3", [2]), np.array([1, -2], L), draw("in4", [1], dtype=D)],
             "empty": [np.zeros([0, 2], F), np.zeros([0], I)],
             "text": [text("a", "b"), draw("in5", [2, 1, 3])]}
    for label, values in lists.items():
        yield op_case("IdentityN", [values], f"IdentityN/{label}", precision=EXACT)
        yield op_case("IdentityN", [values], f"IdentityN/{label}_nothing_known", static="nothing",
                      precision=EXACT)


# op: which of its inputs is the forward value, its range, attributes
GRADIENTS = {
    "TanhGrad": (0, -0.9, 0.9, {}), "SigmoidGrad": (0, 0.1, 0.9, {}),
    "SqrtGrad": (0, 0.3, 3, {}), "RsqrtGrad": (0, 0.3, 3, {}), "ReciprocalGrad": (0, 0.3, 3, {}),
    "ReluGrad": (1, -2, 2, {}), "Relu6Grad": (1, -3, 9, {}),
    "LeakyReluGrad": (1, -2, 2, {"alpha": 0.3}), "EluGrad": (1, -0.9, 2, {}),
    "SoftplusGrad": (1, -4, 4, {}),
}


def unary_gradients():
    for op, (position, low, high, attrs) in GRADIENTS.items():
        def case(label, value, dy, **more):
            inputs = [value, dy] if position == 0 else [dy, value]
            return op_case(op, inputs, f"{op}/{label}", any_zero=True, **attrs, **more)

        for label, shape in SHAPES:
            yield case(label, draw(op + label, shape, low, high), draw(label + op, shape))
        for static in STATIC:
            yield case(f"static_{static}", draw(op + static, [3, 2], low, high),
                       draw(static + op, [3, 2]), static=static)
        yield case("double", draw(op, [7], low, high, D), draw("dy" + op, [7], dtype=D))
        yield case("zeros", zeros(), draw("zeros" + op, [4]))
        # Values that the function can have; second derivatives there overflow in some order.
        special = np.array([0, -1, 1, np.nan, 0.5], F) if op == "TanhGrad" else (
            np.array([0, 1, np.nan, 0.25, 0.5], F) if op == "SigmoidGrad" else specials())
        dy = np.resize(specials(), special.shape)
        yield case("specials", special, np.ones_like(special), gradient=False)
        yield case("specials_of_dy", draw("s" + op, [16], low, high), specials(), gradient=False)
        yield case("both_specials", special, np.roll(dy, 2), gradient=False)


CASTS = [np.float32, np.float64, np.int32, np.int64, np.bool_, np.uint8, np.int8, np.float16,
         ml_dtypes.bfloat16]


def casts():
    """Numbers within the range of the target; what is beyond it is left open by TensorFlow."""
    for source in CASTS:
        for target in CASTS:
            name = f"Cast/{np.dtype(source).name}_to_{np.dtype(target).name}"
            unsigned = np.uint8 in (source, target)
            x = np.array([0, 1, 2, 3, 100, 127] if unsigned else [-128, -3, -1, 0, 1, 2, 127])
            x = x.astype(source)
            if np.dtype(source).kind == "f" and np.dtype(target).kind in "iu":
                x = np.concatenate([x, np.array([0.25, 1.5, 2.75, 0.99], source)])
                if not unsigned:
                    x = np.concatenate([x, np.array([-0.5, -1.75], source)])
            yield op_case("Cast", [x], name, precision=EXACT, DstT=np.dtype(target))
    rounding = np.array([1 + 2 ** -11, 1 + 3 * 2 ** -11, 65519, 65520, 1e-8, 6e-8, 3e38, np.nan,
                         np.inf, -np.inf, 0.0, -0.0, 1 + 2 ** -8, 1 + 3 * 2 ** -8, -1e-40], F)
    for target in (np.float16, ml_dtypes.bfloat16):
        yield op_case("Cast", [rounding], f"Cast/rounding_to_{np.dtype(target).name}",
                      precision=EXACT, DstT=np.dtype(target))
        yield op_case("Cast", [rounding.astype(D)], f"Cast/rounding_double_to_{np.dtype(target)}",
                      precision=EXACT, DstT=np.dtype(target))
        bits = np.array([0, 1, 0x3FF, 0x400, 0x3C00, 0x7BFF, 0x7C00, 0xFC00, 0x8000, 0x8001,
                         0x3F80, 0x7F80, 0xFF80, 0x0080], np.uint16).view(target)
        yield op_case("Cast", [bits], f"Cast/all_kinds_of_{np.dtype(target).name}",
                      precision=EXACT, DstT=F)
    yield op_case("Cast", [np.array([np.nan, 0.0, -0.0, 1e-30, np.inf], F)], "Cast/specials_to_bool",
                  DstT=bool)
    yield op_case("Cast", [np.array([1e300, -1e300, 1 + 2 ** -24, 1e-320, np.nan], D)],
                  "Cast/double_to_float_beyond", precision=EXACT, DstT=F)
    yield op_case("Cast", [np.array([2 ** 24 + 1, 2 ** 53 + 1, -2 ** 62 - 1], L)],
                  "Cast/int64_to_float_rounds", precision=EXACT, DstT=F)
    yield op_case("Cast", [np.array([2 ** 40 + 5, -2 ** 33, 2 ** 31], L)],
                  "Cast/int64_to_int32_wraps", DstT=I)
    yield op_case("Cast", [np.array([1.5, -2.5], D)], "Cast/truncated", precision=EXACT, DstT=F,
                  Truncate=True)
    for label, shape in SHAPES:
        yield op_case("Cast", [draw("cast" + label, shape)], f"Cast/{label}", precision=EXACT, DstT=D)
        yield op_case("Cast", [draw("cast" + label, shape)], f"Cast/{label}_nothing_known",
                      static="nothing", precision=EXACT, DstT=D)


FAMILIES = {"unary": unary, "identities": identities, "unary_gradients": unary_gradients,
            "casts": casts}
