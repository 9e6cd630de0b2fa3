"""Durable records: the journal from which a later process goes on with a batch.

`Journal` is what a runtime is given, `Codec` what carries values into it, `MemoryRecords` its twin for tests.
"""

from toolrt.store._codec import Codec
from toolrt.store._journal import Journal
from toolrt.store._records import MemoryRecords

__all__ = ["Codec", "Journal", "MemoryRecords"]
