"""Opens what Millrace writes with the field's own tools: see tools/interop.

Usage: check.py MILLRACE RUN_FOLDER
"""

import glob
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import traceback

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np

from browser import ALL_TEXT, Browser, click

MILLRACE, RUN = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def millrace(*arguments):
    done = subprocess.run([MILLRACE, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120)
    expect(done.returncode == 0, f"millrace {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def checkpoint_file():
    files = glob.glob(str(RUN / "checkpoint-*.data-*"))
    expect(len(files) == 1, f"one file of tensors, not {files}")
    return files[0]


def graph_def():
    from tensorflow.core.framework import graph_pb2
    graph = graph_pb2.GraphDef()
    graph.ParseFromString((RUN / "graph.pb").read_bytes())
    return graph


def tensorboard_reads_the_events():
    """The scalars and the graph, through TensorBoard's own reader."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    events = EventAccumulator(str(RUN))
    events.Reload()
    tags = events.Tags()
    expect(tags["graph"], "no graph in the events")
    expect(len(events.Graph().node) == len(graph_def().node), "another graph in the events")
    summary = json.loads((RUN / "summary.json").read_text())
    scalars = {tag: [e.value for e in events.Scalars(tag)] for tag in tags["scalars"]}
    losses = [values for tag, values in scalars.items() if "loss" in tag]
    expect(losses and np.allclose(losses[0], summary["losses"], rtol=1e-6),
           f"scalars {list(scalars)} have no losses like summary.json")


def weights():
    from safetensors.numpy import load_file
    return load_file(checkpoint_file())


def safetensors_reads_the_checkpoint():
    """Names, shapes and values, beside what Millrace says of them."""
    tensors = weights()
    lines = {line.split()[0]: line for line in millrace("inspect", RUN / "checkpoint-20").splitlines()
             if line.startswith("  ") and "[" in line}
    expect(set(lines) == set(tensors), f"names differ: {set(lines) ^ set(tensors)}")
    for name, value in tensors.items():
        shape = "[" + ",".join(map(str, value.shape)) + "]"
        expect(shape in lines[name], f"{name}: {value.shape}, but millrace says {lines[name]}")
        low, mean, high = map(float, lines[name].split()[-3:])
        expect(np.allclose([low, mean, high], [value.min(), value.mean(), value.max()], rtol=1e-4,
                           atol=1e-6), f"{name}: {lines[name]}")


def millrace_reads_safetensors():
    from safetensors.numpy import save_file
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "theirs.safetensors")
        save_file({"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.asarray([7, -7], np.int64)},
                  path, metadata={"made_by": "safetensors"})
        text = millrace("inspect", path)
    expect(re.search(r"a +float +\[2,3\] +24 B +0 +2.5 +5", text), text)
    expect(re.search(r"b +int64 +\[2\] +16 B +-7 +0 +7", text), text)


def tensorflow_computes_the_same_logits():
    """Our graph, imported by TensorFlow; the weights of our checkpoint; the same images."""
    import tensorflow as tf
    v1 = tf.compat.v1
    v1.disable_eager_execution()
    graph = graph_def()
    nodes = {node.name: node for node in graph.node}
    tensors = weights()
    logits = next(n.name for n in graph.node if n.op == "BiasAdd" and "logits" in n.name)
    # What the logits need; weights are fed where they are read.
    needed, feeds, todo = set(), {}, [logits]
    while todo:
        name = todo.pop()
        if name in needed:
            continue
        needed.add(name)
        node = nodes[name]
        if node.op == "ReadVariableOp":
            handle = nodes[node.input[0].split(":")[0]]
            feeds[name] = tensors[handle.attr["shared_name"].s.decode()]
            continue
        if node.op in ("Placeholder", "Slice"):
            feeds[name] = np.random.default_rng(1).uniform(0, 1, (64, 28, 28, 1)).astype(np.float32)
            continue
        todo += [i.split(":")[0] for i in node.input if not i.startswith("^")]
    expect(len(feeds) >= 9, f"weights and images, not {list(feeds)}")
    for node in graph.node:
        node.device = ""
    with tf.Graph().as_default() as imported:
        tf.import_graph_def(graph, name="")
        with v1.Session() as session:
            theirs = session.run(logits + ":0", {name + ":0": v for name, v in feeds.items()})
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for i, (name, value) in enumerate(feeds.items()):
            np.save(os.path.join(folder, f"{i}.npy"), value)
            files.append(f"{name}={os.path.join(folder, f'{i}.npy')}")
        millrace("run", RUN / "graph.pb", "--feed", ",".join(files), "--fetch", logits,
                 "--soft_placement", "-o", folder)
        ours = np.load(os.path.join(folder, logits + ".npy"))
    expect(ours.shape == theirs.shape == (64, 10), f"shapes {ours.shape} and {theirs.shape}")
    worst = np.abs(ours - theirs).max() / np.abs(theirs).max()
    expect(worst < 1e-5, f"logits differ by {worst} of the largest")


def tensorboard_draws_devices():
    """The Graph page, in Chromium, coloured by device: the legend names each."""
    port = free_port()
    server = subprocess.Popen([os.path.join(os.path.dirname(sys.executable), "tensorboard"), "--logdir",
                               str(RUN), "--port", str(port), "--load_fast=false"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with Browser() as page:
            deadline = time.time() + 60
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    expect(time.time() < deadline, "TensorBoard does not start")
                    time.sleep(0.2)
            page.open(f"http://127.0.0.1:{port}/?darkMode=false#graphs")
            page.wait_for(f"({ALL_TEXT}).includes('Color by')")
            page.wait_for(click("Device"))
            for device in sorted({n.device for n in graph_def().node}):
                # The legend leaves "/job:" away.
                page.wait_for(f"({ALL_TEXT}).includes({json.dumps(device.removeprefix('/job:'))})", 30)
    finally:
        server.kill()
        server.wait()


def netron_opens(path, *words):
    """Netron draws the file: words of its nodes or tensors are on the page."""
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-c", "import netron, sys, time\n"
         "netron.start(sys.argv[1], browse=False, address=('127.0.0.1', int(sys.argv[2])))\n"
         "time.sleep(300)", str(path), str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with Browser() as page:
            deadline = time.time() + 30
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    expect(time.time() < deadline, "Netron does not start")
                    time.sleep(0.2)
            page.open(f"http://127.0.0.1:{port}/")
            page.wait_for(click("Accept"))  # that it counts its users
            for word in words:
                try:
                    page.wait_for(f"({ALL_TEXT}).includes({json.dumps(word)})", 20)
                except RuntimeError as error:
                    state = page.evaluate("document.body.className + ': ' + document.body.innerText")
                    raise AssertionError(f"no '{word}' on Netron's page: {state[:300]}") from error
    finally:
        server.kill()
        server.wait()


def netron_opens_the_graph():
    netron_opens(RUN / "graph.pb", "MatMul", "Conv2D", "MaxPool")


def netron_opens_the_checkpoint():
    with tempfile.TemporaryDirectory() as folder:
        # Netron goes by the name.
        path = os.path.join(folder, "checkpoint.safetensors")
        shutil.copy(checkpoint_file(), path)
        netron_opens(path, "conv1", "hidden")


def chromium_opens_the_placement_view():
    """The reason of one node, read from the page, is that of the report."""
    report = json.loads((RUN / "placement.json").read_text())
    node = next(d for d in report["decisions"] if "MatMul" in d["node"])
    with Browser() as page:
        page.open(f"file://{RUN}/placement.html#{node['node']}")
        page.wait_for(f"document.getElementById('details').innerText.includes({json.dumps(node['node'])})")
        text = page.evaluate("document.getElementById('details').innerText")
        expect(node["reason"] in text, f"'{node['reason']}' is not in '{text}'")
        expect(node["device"] in text, f"'{node['device']}' is not in '{text}'")


CHECKS = [tensorboard_reads_the_events, safetensors_reads_the_checkpoint, millrace_reads_safetensors,
          tensorflow_computes_the_same_logits, chromium_opens_the_placement_view,
          netron_opens_the_graph, netron_opens_the_checkpoint, tensorboard_draws_devices]


def main():
    failed = 0
    for check in CHECKS:
        name = check.__name__.replace("_", " ")
        try:
            start = time.time()
            check()
            print(f"ok    {name} ({time.time() - start:.1f} s)", flush=True)
        except Exception as error:  # each failure is reported, and the others still run
            failed += 1
            print(f"FAIL  {name}: {type(error).__name__}: {error}", flush=True)
            traceback.print_exc()
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
