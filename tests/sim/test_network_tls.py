"""TLS over the network in memory: ciphertext differs each time, and nothing that is recorded does."""

from __future__ import annotations

import pytest

pytest.importorskip("trustme", reason="certificates for tests")

from toolrt import sim
from toolrt.sim.programs.network._records import Records

from ._tls import encrypted


def test_tls_trace_is_the_same_whatever_openssl_draws() -> None:
    """Two certificates, two sessions: one trace."""
    traces = {sim.run(encrypted(partial=1), sim.RandomWalk(seed=3)).trace.to_json() for _ in range(2)}
    assert len(traces) == 1


def test_tls_is_explored_with_reads_cut_where_records_end() -> None:
    """Every schedule gives the answer, whether a read takes all that is there or one record."""
    report = sim.explore(encrypted(partial=1), sim.Random(sim.RandomWalk(seed=1), 8))
    assert report.outcomes == {b"HELLO": 8}
    assert report.distinct == 8


def test_tls_records_are_counted_and_cut() -> None:
    """Ends are where the headers say, wherever the bytes were cut before; words in the clear have none."""
    hello, data = b"\x16\x03\x01\x00\x03abc", b"\x17\x03\x03\x00\x02de"
    records = Records()
    for part in (hello[:2], hello[2:] + data[:4], data[4:] + data):
        records.add(part)
    assert (records.count, records.ends_within(100)) == (0, None), "a header that was cut is no begin of TLS"
    records = Records()
    for part in (hello[:3], hello[3:] + data[:4], data[4:] + data):
        records.add(part)
    assert (records.count, records.ends_within(100)) == (3, (8, 15, 22))
    assert records.ends_within(15) == (8,)
    records.taken(8)
    assert records.ends_within(100) == (7, 14)
    plain = Records()
    plain.add(b"GET / HTTP/1.1")
    assert plain.ends_within(5) is None
