"""Case studies of frontrun, each written anew, and programs that tell searches and libraries apart."""

from __future__ import annotations

from functools import partial

from tests.benchmarks.head_to_head.libraries import Task
from tests.benchmarks.head_to_head.shared import Shared


class Alternation(Shared):
    """The bug needs two of five tasks to take strict turns, three times each."""

    n = 5

    def begin(self) -> None:
        self.log: list[str] = []

    async def note(self, name: str) -> None:
        for _ in range(3):
            if name in "ab":
                self.log.append(name)
            await self.pause()

    def tasks(self) -> list[Task]:
        return [partial(self.note, name) for name in "abcde"]

    def holds(self) -> bool:
        return self.log != ["a", "b"] * 3


class ShortAfterLong(Shared):
    """The bug needs a task of one step to come after all 25 steps of another."""

    def begin(self) -> None:
        self.place, self.seen = 0, 0

    async def look(self) -> None:
        await self.pause()
        self.seen = self.place

    async def walk(self) -> None:
        for _ in range(25):
            await self.pause()
            self.place += 1

    def tasks(self) -> list[Task]:
        return [self.look, self.walk]

    def holds(self) -> bool:
        return self.seen < 25


class Children(Shared):
    """A task starts two children and counts on their order.  Correct: each has a place of its own."""

    def begin(self) -> None:
        self.answers: list[int] = []
        self.places = [0, 0]

    async def answer(self, child: int) -> None:
        await self.library.sleep(0.1)
        self.answers.append(child)
        self.places[child] = child

    async def ask(self) -> None:
        await self.library.together(partial(self.answer, 0), partial(self.answer, 1))

    async def idle(self) -> None:
        await self.pause()

    def tasks(self) -> list[Task]:
        return [self.ask, self.idle]

    def holds(self) -> bool:
        return (self.answers if self.wrong else self.places) == [0, 1]


class Sleepers(Shared):
    """Two sleep, and the first to wake is expected to be the first.  Correct: it sleeps for a shorter time."""

    def begin(self) -> None:
        self.log: list[int] = []

    async def wake(self, number: int, seconds: float) -> None:
        await self.library.sleep(seconds)
        self.log.append(number)

    def tasks(self) -> list[Task]:
        return [partial(self.wake, 0, 0.2 if self.wrong else 0.1), partial(self.wake, 1, 0.2)]

    def holds(self) -> bool:
        return self.log == [0, 1]


class Poll(Shared):
    """A task polls until another is ready; there is nothing wrong with that."""

    def begin(self) -> None:
        self.ready = False

    async def poll(self) -> None:
        while not self.ready:
            await self.pause()

    async def prepare(self) -> None:
        await self.pause()
        self.ready = True

    def tasks(self) -> list[Task]:
        return [self.poll, self.prepare]


class Rooms(Shared):
    """Two clients enter a room that the first of them makes (frontrun's case study of python-socketio)."""

    def begin(self) -> None:
        self.rooms: dict[str, dict[str, bool]] = {}

    async def enter(self, client: str) -> None:
        if self.wrong:
            if "lobby" not in self.rooms:
                await self.pause()
                self.rooms["lobby"] = {}
        else:
            self.rooms.setdefault("lobby", {})
            await self.pause()
        self.rooms["lobby"][client] = True

    def tasks(self) -> list[Task]:
        return [partial(self.enter, "ann"), partial(self.enter, "bob")]

    def holds(self) -> bool:
        return len(self.rooms["lobby"]) == 2


class Headers(Shared):
    """Requests put their headers into the client's and send those (frontrun's case study of sendgrid).

    Correct: each request has a copy.
    """

    def begin(self) -> None:
        self.headers = {"user": "nobody"}
        self.sent: dict[str, str] = {}

    async def send(self, user: str) -> None:
        headers = self.headers if self.wrong else dict(self.headers)
        headers.update(user=user)
        await self.pause()
        self.sent[user] = headers["user"]

    def tasks(self) -> list[Task]:
        return [partial(self.send, "ann"), partial(self.send, "bob")]

    def holds(self) -> bool:
        return all(user == sent for user, sent in self.sent.items())


class Pool(Shared):
    """A worker that finds no job leaves; a job that comes meanwhile counts on it (frontrun's case study of TPool).

    Where the worker has left, the one who brings the job does it.  Correct: looking and leaving are under one lock.
    """

    def begin(self) -> None:
        self.jobs: list[str] = []
        self.works = True
        self.lock, self.outer = self.library.lock(), self.lock_if_correct()

    async def work(self) -> None:
        async with self.outer:
            async with self.lock:
                nothing = not self.jobs
            await self.pause()
            async with self.lock:
                if nothing:
                    self.works = False
                else:
                    self.jobs.clear()

    async def bring(self) -> None:
        async with self.outer, self.lock:
            self.jobs.append("job")
            if not self.works:
                self.jobs.clear()

    def tasks(self) -> list[Task]:
        return [self.work, self.bring]

    def holds(self) -> bool:
        return self.works or not self.jobs


class PacketIds(Shared):
    """Two messages take the next number that is free (frontrun's case study of amqtt)."""

    def begin(self) -> None:
        self.last, self.lock = 0, self.lock_if_correct()
        self.in_use: set[int] = set()
        self.taken: list[int] = []

    async def take(self) -> None:
        async with self.lock:
            number = self.last + 1
            while number in self.in_use:
                number += 1
            await self.pause()
            self.last = number
            self.in_use.add(number)
            self.taken.append(number)

    def tasks(self) -> list[Task]:
        return [self.take] * 2

    def holds(self) -> bool:
        return len(set(self.taken)) == 2
