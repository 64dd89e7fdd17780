"""Variables and their updates, rows of variables, and ops that look at values: graphs of several runs."""

import numpy as np

from graphs import GraphWriter
from oracle import ELEMENTWISE, EXACT, Case, Run, op_case
from values import D, F, I, L, draw


class Program:
    """A graph with variables: they get their values in a first run, and are read in a last one."""

    def __init__(self, dtype):
        self.graph = GraphWriter()
        self.dtype = dtype
        self.handles, self.assigns, self.reads = [], [], []

    def variable(self, name, value):
        array = np.asarray(value, self.dtype)
        constant = self.graph.const(array)
        handle = self.graph.variable(constant.dtype, list(array.shape), name)
        self.graph.node("AssignVariableOp", [handle, constant], name=f"{name}/init")
        self.assigns.append(f"{name}/init")
        self.reads.append(self.graph.one("ReadVariableOp", handle, name=f"{name}/read",
                                         dtype=constant.dtype))
        self.handles.append(handle)
        return handle

    def scalar(self, value):
        return self.graph.const(np.asarray(value, self.dtype))

    def case(self, name, op, steps, feeds=(), precision=ELEMENTWISE):
        """`steps` times the target "step"."""
        runs = [Run(targets=self.assigns)]
        runs += [Run(feeds=feeds, targets=["step"]) for _ in range(steps)]
        return Case(name, op, self.graph, runs + [Run(fetches=self.reads)], precision)


SHAPES = [("vector", [5]), ("rank_3", [2, 3, 2]), ("scalar", []), ("empty", [0, 2]), ("wide", [37])]


def updates():
    def update(op, slots, operands, **attrs):
        """slots: names with the bounds of their first values; operands: numbers, "gradient"."""
        for dtype in (F, D):
            for label, shape in SHAPES:
                p = Program(dtype)
                handles = [p.variable(name, draw(f"{op}{name}{label}", shape, low, high, dtype))
                           for name, (low, high) in slots.items()]
                array = draw(f"{op}g{label}", shape, dtype=dtype)
                gradient = p.graph.placeholder(array, name="gradient")
                values = [gradient if o == "gradient" else p.scalar(o) for o in operands]
                p.graph.node(op, handles + values, name="step", **attrs)
                suffix = "".join(f"_{k}" for k, v in attrs.items() if v)
                yield p.case(f"{op}/{label}_{np.dtype(dtype).name}{suffix}", op, 3,
                             [(gradient, array)])

    any_ = (-2, 2)
    yield from update("ResourceApplyGradientDescent", {"w": any_}, [0.1, "gradient"])
    for nesterov in (False, True):
        yield from update("ResourceApplyMomentum", {"w": any_, "m": any_}, [0.1, "gradient", 0.9],
                          use_nesterov=nesterov)
        yield from update("ResourceApplyKerasMomentum", {"w": any_, "m": any_},
                          [0.1, "gradient", 0.9], use_nesterov=nesterov)
        yield from update("ResourceApplyAdam", {"w": any_, "m": any_, "v": (0.1, 2)},
                          [0.9, 0.99, 0.01, 0.9, 0.99, 1e-7, "gradient"], use_nesterov=nesterov)
    for update_slots in (False, True):
        yield from update("ResourceApplyAdagrad", {"w": any_, "s": (0.1, 2)}, [0.1, "gradient"],
                          update_slots=update_slots)
    yield from update("ResourceApplyRMSProp", {"w": any_, "s": (0.1, 2), "m": any_},
                      [0.01, 0.9, 0.5, 1e-5, "gradient"])


def variables():
    for dtype in (F, D, I, L):
        name = np.dtype(dtype).name
        for label, shape in SHAPES[:4]:
            value = draw(f"v{label}", shape, dtype=dtype) if dtype in (F, D) else \
                np.asarray(np.arange(int(np.prod(shape))).reshape(shape) - 3, dtype)
            for op in ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"):
                p = Program(dtype)
                handle = p.variable("w", value)
                other = p.graph.placeholder(value[::-1].copy() if shape else value, name="other")
                p.graph.node(op, [handle, other], name="step")
                yield p.case(f"{op}/{label}_{name}", op, 2,
                             [(other, value[::-1].copy() if shape else value)], EXACT)
            for op in ("VarHandleOp", "ReadVariableOp", "VarIsInitializedOp"):
                p = Program(dtype)
                handle = p.variable("w", value)
                flag = p.graph.one("VarIsInitializedOp", handle)
                yield Case(f"{op}/{label}_{name}", op, p.graph,
                           [Run(fetches=[flag]), Run(targets=p.assigns), Run(fetches=[flag, *p.reads])],
                           EXACT)
        table = draw("table", [5, 2], dtype=dtype) if dtype in (F, D) else \
            np.arange(10).reshape(5, 2).astype(dtype)
        for label, ids, index in [("vector", [3, 0, 3], I), ("matrix", [[1, 4], [4, 1]], L),
                                  ("scalar", 2, I), ("empty", [], L)]:
            ids = np.asarray(ids, index)
            p = Program(dtype)
            handle = p.variable("w", table)
            rows = p.graph.one("ResourceGather", handle, p.graph.const(ids), dtype=handle_dtype(p))
            yield Case(f"ResourceGather/{label}_{name}", "ResourceGather", p.graph,
                       [Run(targets=p.assigns), Run(fetches=[rows])], EXACT)
            rows = np.ones(list(ids.shape) + [2], dtype) * np.asarray(3, dtype)
            for op in ("ResourceScatterAdd", "ResourceScatterSub"):
                for kind, values in [("rows", rows), ("number", np.asarray(2, dtype))]:
                    p = Program(dtype)
                    handle = p.variable("w", table)
                    p.graph.node(op, [handle, p.graph.const(ids), p.graph.const(values)], name="step")
                    yield p.case(f"{op}/{label}_{kind}_{name}", op, 2)
        for label, ids in [("beyond", [0, 5]), ("negative", [-1])]:
            for op in ("ResourceGather", "ResourceScatterAdd", "ResourceScatterSub"):
                p = Program(dtype)
                handle = p.variable("w", table)
                index = p.graph.const(np.asarray(ids, I))
                fetches = []
                if op == "ResourceGather":
                    fetches = [p.graph.one(op, handle, index, dtype=handle_dtype(p))]
                else:
                    p.graph.node(op, [handle, index, p.scalar(1)], name="step")
                yield Case(f"{op}/refused_{label}_{name}", op, p.graph,
                           [Run(targets=p.assigns),
                            Run(fetches=fetches, targets=[] if fetches else ["step"])])
    p = Program(F)
    p.variable("w", [1, 2])
    yield Case("ReadVariableOp/refused_before_it_has_a_value", "ReadVariableOp", p.graph,
               [Run(fetches=p.reads)])


def handle_dtype(program):
    return np.dtype(program.dtype)


def checks():
    for label, x in [("vector", draw("c", [3])), ("rank_3", draw("c", [2, 1, 3])),
                     ("empty", draw("c", [0, 2])), ("scalar", draw("c", [])),
                     ("double", draw("c", [4], dtype=D))]:
        yield op_case("CheckNumerics", [x], f"CheckNumerics/{label}", precision=EXACT, message="m")
    for label, bad in [("nan", np.nan), ("infinity", np.inf), ("minus_infinity", -np.inf)]:
        yield op_case("CheckNumerics", [np.array([1, bad], F)], f"CheckNumerics/refused_{label}",
                      message="m")
    for label, condition, data in [("float", True, [1.5]), ("strings", True, ["a", "b"]),
                                   ("refused_false", False, [1.5]), ("refused_false_strings", False, ["a"])]:
        graph = GraphWriter()
        flag = graph.placeholder(np.asarray(condition), name="flag")
        graph.node("Assert", [flag, [graph.const(np.asarray(data, F) if label[-5:] != "rings" else data)]],
                   name="check")
        y = graph.one("Identity", graph.const(np.asarray([1, 2], I)), control=["check"])
        yield Case(f"Assert/{label}", "Assert", graph, [Run([(flag, np.asarray(condition))], [y])], EXACT)
    for label, x in [("vector", draw("p", [3])), ("rank_3", draw("p", [2, 1, 3])),
                     ("integers", np.asarray([1, 2], I)), ("empty", draw("p", [0]))]:
        yield op_case("Print", [x, [x]], f"Print/{label}", precision=EXACT, differentiate=(0,),
                      message="golden: ", first_n=0)
        graph = GraphWriter()
        value = graph.const(x)
        graph.node("NoOp", [], name="nothing")
        y = graph.one("Identity", value, control=["nothing"])
        yield Case(f"NoOp/{label}", "NoOp", graph, [Run(targets=["nothing"]), Run(fetches=[y])], EXACT)


def sources():
    for label, value in [("float", draw("s", [2, 3])), ("double_scalar", draw("s", [], dtype=D)),
                         ("int32_empty", np.zeros([0, 2], I)), ("int64_rank_5", np.arange(4).reshape(1, 2, 1, 2, 1)),
                         ("bool", np.asarray([True, False])), ("text", ["a", ""]),
                         ("half", np.asarray([1, -2], np.float16)), ("uint8", np.asarray([200], np.uint8))]:
        graph = GraphWriter()
        y = graph.one("Identity", graph.const(value))
        yield Case(f"Const/{label}", "Const", graph, [Run(fetches=[y])], EXACT)
        graph = GraphWriter()
        x = graph.placeholder(value, "extents")
        yield Case(f"Placeholder/{label}", "Placeholder", graph,
                   [Run([(x, value)], [graph.one("Identity", x)])], EXACT)

    for label, dims, value in [("matrix", [2, 3], draw("f", [])), ("scalar", [], draw("f", [])),
                               ("empty", [0, 2], draw("f", [])), ("int64", [4], np.asarray(7, L)),
                               ("bool", [2], np.asarray(True)), ("rank_5", [1, 2, 1, 2, 1], draw("f", [], dtype=D))]:
        for static, const in [("known", (0,)), ("nothing", ())]:
            yield op_case("Fill", [np.asarray(dims, I), value], f"Fill/{label}_{static}", const=const,
                          static=static, precision=EXACT)
    for static in ("known", "nothing"):
        yield op_case("Fill", [np.asarray([-1], I), draw("f", [])], f"Fill/refused_negative_{static}", static=static)
    for label, ends in [("up", (2, 11, 3)), ("down", (5, -2, -2)), ("none", (3, 3, 1)),
                        ("away", (0, 5, -1)), ("one", (0, 1, 7))]:
        for dtype in (I, L, F, D):
            yield op_case("Range", [np.asarray(e, dtype) for e in ends], f"Range/{label}_{np.dtype(dtype).name}",
                          const=(0, 1, 2) if dtype in (I, F) else (), precision=EXACT, gradient=False)
    yield op_case("Range", [np.asarray(e, F) for e in (0, 1, 0.1)], "Range/tenths", gradient=False)
    for static in ("known", "nothing"):
        yield op_case("Range", [np.asarray(e, I) for e in (0, 5, 0)], f"Range/refused_step_0_{static}", static=static)
    for label, value in [("vector", draw("pd", [3])), ("scalar", draw("pd", [])), ("empty", draw("pd", [0, 2])),
                         ("int64", np.asarray([1, 2], L)), ("text", ["a", "bc"])]:
        graph = GraphWriter()
        shape = list(np.asarray(value).shape)
        y = graph.one("PlaceholderWithDefault", graph.const(value), name="y", shape=[None] * len(shape))
        fed = np.asarray(value)[:1] if shape else value
        z = graph.one("Identity", y)
        yield Case(f"PlaceholderWithDefault/{label}", "PlaceholderWithDefault", graph,
                   [Run(fetches=[z]), Run([(y, fed)], [z])], EXACT)
    for label, parts, separator in [("vectors", [["a", "b"], ["c", ""]], "-"), ("scalar", ["x", ["a", "b"]], ""),
                                    ("scalars", ["a", "b", "c"], "/"), ("one", [["a"]], ","),
                                    ("empty", [np.zeros([0], "S1"), "x"], "-")]:
        for static in ("known", "nothing"):
            yield op_case("StringJoin", [parts], f"StringJoin/{label}_{static}", static=static, precision=EXACT,
                          separator=separator)
    yield op_case("StringJoin", [[["a", "b"], ["c", "d", "e"]]], "StringJoin/refused_lengths", static="nothing")
    for label, base, shard, shards in [("first", "model", 0, 1), ("third", "a/b.ckpt", 2, 5),
                                       ("many", "x", 12345, 678901), ("no_name", "", 1, 2)]:
        yield op_case("ShardedFilename", [base, np.asarray(shard, I), np.asarray(shards, I)],
                      f"ShardedFilename/{label}", precision=EXACT)
    yield op_case("ShardedFilename", [["a", "b"], np.asarray(0, I), np.asarray(1, I)],
                  "ShardedFilename/refused_two_names", static="nothing")
    x = draw("gn", [4, 3, 2])
    for label, ids in [("elements", [[3, 2, 1], [0, 0, 0], [3, 2, 1]]), ("rows", [[[1, 0]], [[2, 2]]]),
                       ("slices", [[0]]), ("one", [1, 2]), ("none", np.zeros([0, 2], I))]:
        for static, index in [("known", L), ("extents", I)]:
            yield op_case("GatherNd", [x, np.asarray(ids, index)], f"GatherNd/{label}_{static}", static=static,
                          precision=EXACT)
    for label, ids in [("beyond", [[4]]), ("negative", [[-1]]), ("depth", [[0, 0, 0, 0]])]:
        yield op_case("GatherNd", [x, np.asarray(ids, I)], f"GatherNd/refused_{label}", static="nothing")


FAMILIES = {"updates": updates, "variables": variables, "checks": checks, "sources": sources}
