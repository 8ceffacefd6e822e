"""Protocols between parties that do not show each other their data.

    result = cloister.protocols.distributed_dp_pca({"east": rows, "west": rows}, epsilon=1, data_norm=1)
    result.components, result.guarantee, result.transcript

Parties are written against `Party` and `Channel`; `run` takes them through a protocol and returns a `Transcript`:
rounds, bytes, and who saw what.
"""

from cloister.protocols.parties import (
    Channel,
    InProcessChannel,
    Message,
    Outgoing,
    Party,
    Transcript,
    TranscriptEntry,
    run,
)
from cloister.protocols.pca.protocol import DistributedComponents, distributed_dp_pca

__all__ = [
    "Channel",
    "DistributedComponents",
    "InProcessChannel",
    "Message",
    "Outgoing",
    "Party",
    "Transcript",
    "TranscriptEntry",
    "distributed_dp_pca",
    "run",
]
