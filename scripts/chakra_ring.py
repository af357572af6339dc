#!/usr/bin/env python3
"""Writes a ring all-reduce as Chakra execution traces of schema 1.0.0, as ASTRA-sim takes a custom collective.

    scripts/chakra_ring.py 4 configs/collectives/chakra_ring_4

writes configs/collectives/chakra_ring_4.0.et to .3.et, which netsim reads too (docs/concepts/programs.md). The fields are written
byte by byte (protobuf.dev/programming-guides/encoding), so nothing has to be installed.
"""

import argparse

COMPUTE, SEND, RECEIVE = 4, 5, 6
INT32, INT64, STRING = 7, 9, 29  # fields of an attribute's value


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def integer(field, value):
    return varint(field << 3) + varint(value)


def content(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def attribute(field, name, kind, value):
    return content(field, content(1, name) + (content(kind, value) if kind == STRING else integer(kind, value)))


def node(number, name, kind, after, attributes=()):
    record = integer(1, number) + content(2, name) + integer(3, kind)
    if after:
        record += content(5, b"".join(varint(other) for other in after))
    return record + b"".join(attribute(10, *each) for each in attributes)


def trace(rank, ranks, size):
    """Each chunk goes round once while it is added up, and once more as the sum."""
    records = [content(1, "1.0.0") + attribute(2, "collective", STRING, "allreduce")]
    to, source = (rank + 1) % ranks, (rank - 1) % ranks

    def add(name, kind, *attributes):
        number = len(records) - 1
        after = [number - 1] if number else []
        records.append(node(number, f"{name}_{number}", kind, after, attributes))

    common = ("comm_size", INT64, size), ("comm_tag", INT32, 0)
    for step in range(2 * (ranks - 1)):
        add("send", SEND, ("comm_dst", INT32, to), *common)
        add("receive", RECEIVE, ("comm_src", INT32, source), *common)
        if step < ranks - 1:
            add("reduce", COMPUTE)
    return b"".join(varint(len(record)) + record for record in records)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ranks", type=int)
    parser.add_argument("name", help="of the files, without .R.et")
    parser.add_argument("--size", type=int, default=262144, help="bytes of a message")
    arguments = parser.parse_args()
    if arguments.ranks < 2 or arguments.size < 1:
        parser.error("at least 2 ranks, and messages of at least 1 byte")
    for rank in range(arguments.ranks):
        with open(f"{arguments.name}.{rank}.et", "wb") as file:
            file.write(trace(rank, arguments.ranks, arguments.size))


if __name__ == "__main__":
    main()
