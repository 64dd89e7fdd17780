"""Gradients that TensorFlow's CPU kernels do not have, computed by PyTorch.

Debian's python3-torch is for the system's Python and an older NumPy: each value is computed by this
file as a program of that Python, to which arrays go and from which they come as npz.
"""

import io
import json
import subprocess
import sys

import numpy as np

PYTHON = "/usr/bin/python3"


def _ask(what, attrs, **arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    done = subprocess.run([PYTHON, __file__, what, json.dumps(attrs)], input=buffer.getvalue(),
                          stdout=subprocess.PIPE, check=True)
    return dict(np.load(io.BytesIO(done.stdout)))


def conv2d_gradients(inputs, dy, attrs):
    """Of Conv2D in NHWC for both operands, by their positions."""
    kept = {key: attrs[key] for key in ("strides", "padding", "dilations", "explicit_paddings")
            if key in attrs}
    dx = _ask("conv2d", kept, x=inputs[0], w=inputs[1], dy=dy)
    return {0: dx["x"], 1: dx["w"]}


def log_softmax_gradients(inputs, dy, attrs):
    return {0: _ask("log_softmax", {}, x=inputs[0], dy=dy)["x"]}


def _conv2d(torch, a, attrs):
    """The images are padded by hand: PyTorch has no uneven paddings."""
    strides, dilations = attrs["strides"][1:3], attrs["dilations"][1:3]
    pads = []
    for i in (0, 1):
        extent, window = a["x"].shape[1 + i], a["w"].shape[i]
        if attrs["padding"] == "SAME":
            outputs = -(-extent // strides[i])
            missing = (outputs - 1) * strides[i] + (window - 1) * dilations[i] + 1 - extent
            pads.append((max(missing, 0) // 2, max(missing, 0) - max(missing, 0) // 2))
        elif attrs["padding"] == "EXPLICIT":
            pads.append(tuple(attrs["explicit_paddings"][2 + 2 * i : 4 + 2 * i]))
        else:
            pads.append((0, 0))
    x = torch.tensor(a["x"], requires_grad=True)
    w = torch.tensor(a["w"], requires_grad=True)
    padded = torch.nn.functional.pad(x.permute(0, 3, 1, 2), (*pads[1], *pads[0]))
    y = torch.nn.functional.conv2d(padded, w.permute(3, 2, 0, 1), stride=tuple(strides),
                                   dilation=tuple(dilations), groups=a["x"].shape[3] // a["w"].shape[2])
    y.permute(0, 2, 3, 1).backward(torch.tensor(a["dy"]))
    return {"x": x.grad.numpy(), "w": w.grad.numpy()}


def _log_softmax(torch, a, attrs):
    x = torch.tensor(a["x"], requires_grad=True)
    torch.log_softmax(x, -1).backward(torch.tensor(a["dy"]))
    return {"x": x.grad.numpy()}


if __name__ == "__main__":
    import torch

    arrays = dict(np.load(io.BytesIO(sys.stdin.buffer.read())))
    compute = {"conv2d": _conv2d, "log_softmax": _log_softmax}[sys.argv[1]]
    np.savez(sys.stdout.buffer, **compute(torch, arrays, json.loads(sys.argv[2])))
