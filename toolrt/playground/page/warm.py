"""What the memory snapshot has done: each kind of question was answered once, so all that answers need is imported."""

import gc
import importlib
import json

from toolrt.playground._programs import starting_points
from toolrt.playground._session import PlaygroundSession

session = PlaygroundSession()
programs = {one.name: one for one in starting_points()}
lost = programs["lost update"].source
for question in (
    {"kind": "explore", "source": lost},
    {"kind": "repairs", "source": lost},
    {"kind": "replay", "source": lost, "schedule": "main main.0*2 main.1*2 main"},
    {"kind": "play", "source": lost},
    {"kind": "explore", "source": programs["one cup of tea"].source, "track": True},
    {"kind": "batch", "source": programs["a batch of counters"].source},
):
    answer = json.loads(session.answer(json.dumps(question), len))
    assert "error" not in answer, answer
session = PlaygroundSession()
del programs, lost, question, answer
# Caches and garbage may hold an open archive, and files are no part of the snapshot.
importlib.invalidate_caches()
gc.collect()
