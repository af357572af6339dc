"""The streams of communication, as in `exposed_by` of summary.json and in the columns of the tables."""

STREAMS = ("tp", "cp", "ep", "pp", "dp", "io", "offload")
# The streams that the dimensions of parallelism use.
PARALLEL_STREAMS = STREAMS[:5]
