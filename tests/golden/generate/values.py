"""The lists of edge cases that are generated for every op that they fit."""

import numpy as np

from oracle import rng

F, D, I, L = np.float32, np.float64, np.int32, np.int64

# Shapes that every elementwise op must take: (name, shape).
SHAPES = [("scalar", []), ("empty", [0, 3]), ("size_1", [1]), ("rank_2", [3, 7]),
          ("rank_3", [2, 3, 4]), ("rank_5", [2, 1, 3, 2, 2])]

# (name, shape of x, shape of y)
BROADCASTS = [("scalars", [], []), ("left_scalar", [], [2, 3]), ("right_scalar", [2, 3], []),
              ("row", [2, 3], [3]), ("column", [2, 3], [2, 1]), ("both_sides", [2, 1, 3], [4, 1]),
              ("size_1", [1], [1, 1]), ("empty", [2, 0], [2, 1]), ("empty_both", [0, 1], [1, 3]),
              ("rank_3", [2, 3, 4], [2, 3, 4]), ("rank_5", [2, 1, 3, 1, 2], [1, 2, 1, 4, 2])]

STATIC = ["extents", "nothing"]


def specials(dtype=F):
    info = np.finfo(dtype)
    return np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, 0.5, -0.5, info.max, info.min,
                     info.tiny, -info.tiny, info.eps, 100, -100], dtype)


def zeros(dtype=F):
    return np.array([0.0, -0.0, 1.0, -1.0], dtype)


def denormals(dtype=F):
    info = np.finfo(dtype)
    small = float(info.smallest_subnormal)
    return np.array([small, -small, small * 1024, float(info.tiny) - small, 0.0], dtype)


def extremes(dtype):
    info = np.iinfo(dtype)
    return np.array([info.min, info.min + 1, -1, 0, 1, 7, info.max - 1, info.max], dtype)


def draw(name, shape, low=-2.0, high=2.0, dtype=F):
    """Sixty-fourths (they compress), or integers, that depend on the name only; none is 0."""
    random = rng(name)
    if np.issubdtype(dtype, np.integer):
        values = random.integers(int(low), int(high) + 1, shape)
        return np.asarray(np.where(values == 0, 1, values) if low < 0 else values, dtype)
    if dtype == bool:
        return np.asarray(random.uniform(size=shape) < 0.5)
    values = np.round(random.uniform(low, high, shape) * 64) / 64
    values = np.where(values == 0, 1 / 64, values)
    return np.asarray(np.clip(values, np.ceil(low * 64) / 64, np.floor(high * 64) / 64), dtype)


def distinct(name, shape, low=-2.0, high=2.0, dtype=F):
    """As draw, all different: for ops that choose."""
    count = int(np.prod(shape))
    order = rng(name).permutation(count)
    values = low + (high - low) * (order + 0.5) / max(count, 1)
    return np.asarray(values.reshape(shape), dtype)


def text(*values):
    """A vector of strings."""
    return np.array(values, object)
