"""Makes the training graphs beside it: python generate.py [FOLDER]. ../README.md says with what.

Each case is a graph that TensorFlow built, differentiated and saved, with its initial values as
constants, and the losses of 30 steps in TensorFlow: <model>-<optimizer>.pb and .losses.npy. The
batches of a model, of which each step takes the next, are <model>.x.npy and <model>.labels.npy.
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()

STEPS = 30
BATCHES, BATCH, CLASSES = 5, 16, 10


def batches(size):
    """Noisy pictures of ten patterns."""
    rng = np.random.RandomState(7)
    patterns = rng.uniform(0, 1, (CLASSES, size, size, 1))
    labels = rng.randint(0, CLASSES, (BATCHES, BATCH))
    x = patterns[labels] + rng.normal(0, 0.3, (BATCHES, BATCH, size, size, 1))
    return x.astype(np.float32), labels.astype(np.int32)


class Layers:
    def __init__(self):
        self.rng = np.random.RandomState(3)

    def variable(self, name, shape, scale=None, value=0.0):
        fan = np.prod(shape[:-1]) if len(shape) > 1 else 1
        initial = (self.rng.normal(0, scale or np.sqrt(2.0 / fan), shape) if len(shape) > 1
                   else np.full(shape, value))
        return v1.get_variable(name, initializer=tf.constant(initial, tf.float32), use_resource=True)

    def dense(self, x, name, outputs, activation=True):
        inputs = int(x.shape[1])
        y = tf.nn.bias_add(tf.matmul(x, self.variable(name + "/w", (inputs, outputs))),
                           self.variable(name + "/b", (outputs,)))
        return tf.nn.relu(y) if activation else y

    def conv(self, x, name, size, outputs, padding="SAME", bias=True):
        w = self.variable(name + "/w", (size, size, int(x.shape[3]), outputs))
        y = tf.nn.conv2d(x, w, strides=1, padding=padding)
        return tf.nn.bias_add(y, self.variable(name + "/b", (outputs,))) if bias else y

    def batch_norm(self, x, name):
        channels = int(x.shape[3])
        scale = self.variable(name + "/gamma", (channels,), value=1.0)
        offset = self.variable(name + "/beta", (channels,))
        mean = v1.get_variable(name + "/mean", initializer=tf.zeros([channels]), use_resource=True, trainable=False)
        variance = v1.get_variable(name + "/variance", initializer=tf.ones([channels]), use_resource=True, trainable=False)
        y, m, v = v1.nn.fused_batch_norm(x, scale, offset, epsilon=1e-3, is_training=True)
        for average, new in ((mean, m), (variance, v)):
            v1.add_to_collection(v1.GraphKeys.UPDATE_OPS,
                                 average.assign_sub((average.read_value() - new) * 0.1))
        return y


def flatten(x):
    return tf.reshape(x, [-1, int(np.prod(x.shape[1:]))])


def mlp(x):
    net = Layers()
    x = net.dense(flatten(x), "hidden1", 24)
    x = net.dense(x, "hidden2", 16)
    return net.dense(x, "logits", CLASSES, activation=False)


def lenet(x):
    net = Layers()
    x = tf.nn.max_pool2d(tf.nn.relu(net.conv(x, "conv1", 5, 4)), 2, 2, "SAME")
    x = tf.nn.max_pool2d(tf.nn.relu(net.conv(x, "conv2", 3, 6, "VALID")), 2, 2, "VALID")
    x = net.dense(flatten(x), "hidden", 16)
    return net.dense(x, "logits", CLASSES, activation=False)


def batchnorm(x):
    net = Layers()
    x = tf.nn.relu(net.batch_norm(net.conv(x, "conv1", 3, 6, bias=False), "norm1"))
    x = tf.nn.avg_pool2d(x, 2, 2, "VALID")
    x = tf.nn.relu(net.batch_norm(net.conv(x, "conv2", 3, 8, bias=False), "norm2"))
    return net.dense(tf.reduce_mean(x, [1, 2]), "logits", CLASSES, activation=False)


MODELS = {"mlp": (mlp, 8), "lenet": (lenet, 12), "batchnorm": (batchnorm, 8)}
OPTIMIZERS = {
    "sgd": lambda: v1.train.GradientDescentOptimizer(0.1),
    "nesterov": lambda: v1.train.MomentumOptimizer(0.02, 0.9, use_nesterov=True),
    "adam": lambda: v1.train.AdamOptimizer(1e-2),
    "rmsprop": lambda: v1.train.RMSPropOptimizer(1e-2),
}


def main(folder):
    config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    for model, (build, size) in MODELS.items():
        xs, labels = batches(size)
        np.save(os.path.join(folder, model + ".x.npy"), xs)
        np.save(os.path.join(folder, model + ".labels.npy"), labels)
        for name, optimizer in OPTIMIZERS.items():
            with tf.Graph().as_default() as graph:
                x = v1.placeholder(tf.float32, [None, size, size, 1], "x")
                y = v1.placeholder(tf.int32, [None], "labels")
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
                    labels=y, logits=build(x)), name="loss")
                with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
                    train = optimizer().minimize(loss, name="train")
                init = v1.global_variables_initializer()
                losses = []
                with v1.Session(config=config) as session:
                    session.run(init)
                    for step in range(STEPS):
                        at = step % BATCHES
                        losses.append(session.run([loss, train], {x: xs[at], y: labels[at]})[0])
                base = os.path.join(folder, "%s-%s" % (model, name))
                with open(base + ".pb", "wb") as f:
                    f.write(graph.as_graph_def().SerializeToString())
                np.save(base + ".losses.npy", np.asarray(losses, np.float32))
                print("%-20s %3d nodes, init %s, train %s, loss %.4f to %.4f" % (
                    base, len(graph.get_operations()), init.name, train.name, losses[0], losses[-1]))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__)))
