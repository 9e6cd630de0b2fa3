"""Policies: each picks the next choice of one execution."""

from toolrt.sim.policies._choices import Choices
from toolrt.sim.policies._fifo import Fifo
from toolrt.sim.policies._follow import FollowSchedule as Follow
from toolrt.sim.policies._follow import Strayed
from toolrt.sim.policies._pct import PCT
from toolrt.sim.policies._policy import Policy, RunInfo
from toolrt.sim.policies._pos import POS
from toolrt.sim.policies._random_walk import RandomWalk
from toolrt.sim.policies._replay import Replay
from toolrt.sim.policies._urw import URW

__all__ = ["PCT", "POS", "URW", "Choices", "Fifo", "Follow", "Policy", "RandomWalk", "Replay", "RunInfo", "Strayed"]
