#!/usr/bin/env python3
"""Writes the layers of shipped networks, with times and sizes, for the workload `kind: layers`.

    scripts/layers.py [--out DIR] [--check]

Each network is a CSV in configs/workloads/layers. Sizes follow from the shapes in the papers that describe the networks, times
from the number of operations: 2 for each multiplication and addition, at RATE operations per second. The gradient of the input
and that of the parameters take as long as the forward each. A network's first layer has no gradient of its input. What moves
memory only (normalization, activations, pooling) takes no time, but its parameters count. --check compares with the files.
"""
import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RATE = 50e12  # operations per second
GRADIENT_BYTES = 4
ACTIVATION_BYTES = 2
COLUMNS = ["name", "forward", "backward", "weight_gradient", "bytes", "after", "matrix", "all_to_all"]


class Network:
    """The rows of one network, and how many parameters they have."""

    def __init__(self, text):
        self.text = text
        self.rows = []
        self.parameters = 0

    def add(self, name, operations, parameters, after=(), matrix=(), all_to_all=0, reduced=True):
        time = f"{operations / RATE * 1e6:.3f} us"
        self.parameters += parameters
        self.rows.append({
            "name": name,
            "forward": time,
            "backward": time if self.rows else "0",
            "weight_gradient": time if parameters and operations else "0",
            "bytes": f"{parameters * GRADIENT_BYTES if reduced else 0} B",
            "after": " ".join(after),
            "matrix": " ".join(map(str, matrix)),
            "all_to_all": f"{all_to_all} B" if all_to_all else "",
        })

    def csv(self):
        used = [column for column in COLUMNS if any(row[column] for row in self.rows)]
        lines = [f"# {self.text}", f"# {self.parameters} parameters. Written by scripts/layers.py, which says how.", ",".join(used)]
        lines += [",".join(row[column] for column in used) for row in self.rows]
        return "\n".join(lines) + "\n"


def vgg_19(batch=32):
    """Simonyan & Zisserman, arXiv 1409.1556, table 1, column E."""
    network = Network(f"VGG-19, {batch} images of 224 x 224")
    size, channels = 224, 3
    for stage, (count, outputs) in enumerate(zip((2, 2, 4, 4, 4), (64, 128, 256, 512, 512)), start=1):
        for i in range(1, count + 1):
            network.add(f"conv{stage}_{i}", 2 * batch * size * size * 9 * channels * outputs, 9 * channels * outputs + outputs)
            channels = outputs
        size //= 2
    inputs = size * size * channels
    for name, outputs in (("fc6", 4096), ("fc7", 4096), ("fc8", 1000)):
        network.add(name, 2 * batch * inputs * outputs, inputs * outputs + outputs, matrix=(inputs, outputs))
        inputs = outputs
    assert network.parameters == 143_667_240
    return network


def resnet_50(batch=64):
    """He et al., arXiv 1512.03385, table 1; the stride is in the 3 x 3 convolution, as in torchvision."""
    network = Network(f"ResNet-50, {batch} images of 224 x 224; parameters of a normalization are those of its convolution")

    def convolution(name, kernel, inputs, outputs, size, after):
        weights = kernel * kernel * inputs * outputs
        network.add(name, 2 * batch * size * size * weights, weights + 2 * outputs, after)

    convolution("conv1", 7, 3, 64, 112, ())
    channels, size, before = 64, 56, ["conv1"]
    for stage, (blocks, width) in enumerate(zip((3, 4, 6, 3), (64, 128, 256, 512)), start=2):
        for block in range(1, blocks + 1):
            name = f"conv{stage}_{block}"
            halves = stage > 2 and block == 1
            convolution(f"{name}_a", 1, channels, width, size, before)
            shortcut = (f"{name}_shortcut", 1, channels, 4 * width, size // 2 if halves else size, list(before))
            size = size // 2 if halves else size
            convolution(f"{name}_b", 3, width, width, size, [f"{name}_a"])
            convolution(f"{name}_c", 1, width, 4 * width, size, [f"{name}_b"])
            before = [f"{name}_c"]
            if block == 1:
                convolution(*shortcut)
                before.append(f"{name}_shortcut")
            channels = 4 * width
    network.add("fc", 2 * batch * channels * 1000, channels * 1000 + 1000, before, (channels, 1000))
    assert network.parameters == 25_557_032
    return network


def bert_large(batch=8, sequence=512):
    """Devlin et al., arXiv 1810.04805: 24 layers, hidden size 1024, vocabulary of 30,522."""
    network = Network(f"BERT-large, {batch} sequences of {sequence} tokens")
    hidden, tokens = 1024, batch * sequence
    network.add("embeddings", 0, (30_522 + 512 + 2) * hidden + 2 * hidden)
    for i in range(1, 25):
        network.add(f"attention_{i}", tokens * (8 * hidden * hidden + 4 * sequence * hidden), 4 * hidden * hidden + 4 * hidden + 2 * hidden)
        network.add(f"feed_forward_{i}", tokens * 16 * hidden * hidden, 8 * hidden * hidden + 5 * hidden + 2 * hidden)
    network.add("pooler", 2 * batch * hidden * hidden, hidden * hidden + hidden, matrix=(hidden, hidden))
    assert network.parameters == 335_141_888
    return network


def moe(batch=8, sequence=512, layers=12):
    """A Transformer whose every second layer is a mixture of experts, one expert on each worker, each token to one of them."""
    network = Network(f"mixture of experts, {batch} sequences of {sequence} tokens, {layers} layers, experts of one worker each")
    hidden, tokens = 1024, batch * sequence
    for i in range(1, layers + 1):
        network.add(f"attention_{i}", tokens * (8 * hidden * hidden + 4 * sequence * hidden), 4 * hidden * hidden + 6 * hidden)
        experts = i % 2 == 0
        network.add(f"experts_{i}" if experts else f"feed_forward_{i}", tokens * 16 * hidden * hidden, 8 * hidden * hidden + 5 * hidden,
                    all_to_all=tokens * hidden * ACTIVATION_BYTES if experts else 0, reduced=not experts)
    return network


NETWORKS = {"vgg_19": vgg_19, "resnet_50": resnet_50, "bert_large": bert_large, "moe": moe}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "configs" / "workloads" / "layers")
    parser.add_argument("--check", action="store_true", help="compares with the files and writes nothing")
    options = parser.parse_args()
    different = []
    for name, make in NETWORKS.items():
        path, text = options.out / f"{name}.csv", make().csv()
        if not options.check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            different.append(str(path))
    if different:
        sys.exit("different from what scripts/layers.py writes: " + ", ".join(different))


if __name__ == "__main__":
    main()
