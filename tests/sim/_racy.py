"""Small programs with a race of a kind that services have, written before anything was proposed for them.

Each returns True when all is well, and has the repairs that a person would make: a kind of constraint and the functions
that it is about; none where no lock, order, look or shield is one.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

from toolrt import sim

__all__ = ["HEAD", "RACY", "explored", "judged", "module_of"]

#: What stands before each text: a lock, an event, and locks in an order, for a repair that is written into it.
HEAD = "import trio\nfrom toolrt import sim\n\n\nLOCK, EVENT, LOCKS = None, None, []\n\n\n"

#: For each program the repairs that are right, and its text.
RACY: dict[str, tuple[list[str], str]] = {
    "cache stampede": (
        ["atomic get"],
        """
class Cache:
    def __init__(self):
        self.entries, self.loads = {}, 0

    async def load(self, key):
        self.loads += 1
        await trio.lowlevel.checkpoint()
        return key.upper()

    async def get(self, key):
        if key not in self.entries:
            self.entries[key] = await self.load(key)
        return self.entries[key]


async def program():
    cache = Cache()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cache.get, "a")
        nursery.start_soon(cache.get, "a")
    return cache.loads == 1
""",
    ),
    "double checkout": (
        ["atomic acquire"],
        """
class Pool:
    def __init__(self, connections):
        self.idle, self.used = connections, []

    async def acquire(self):
        connection = self.idle[-1]
        await trio.lowlevel.checkpoint()  # is it alive?
        self.used.append(connection)
        if connection in self.idle:
            self.idle.remove(connection)
        return connection


async def program():
    pool = Pool(["a", "b"])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pool.acquire)
        nursery.start_soon(pool.acquire)
    return len(set(pool.used)) == 2
""",
    ),
    "lost wake-up": (
        ["atomic get put"],
        """
class Mailbox:
    def __init__(self):
        self.items, self.waiting = [], None

    async def get(self):
        if not self.items:
            await trio.lowlevel.checkpoint()  # a line to the log
            event = self.waiting = trio.Event()
            await event.wait()
        return self.items.pop()

    async def put(self, item):
        self.items.append(item)
        if self.waiting is not None:
            self.waiting.set()


async def program():
    mailbox = Mailbox()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(mailbox.get)
        nursery.start_soon(mailbox.put, "letter")
    return mailbox.items == []
""",
    ),
    "name taken twice": (
        ["atomic register"],
        """
async def register(users, name, password):
    if name in users:
        return False
    digest = await digested(password)
    users[name] = digest
    return True


async def digested(password):
    await trio.lowlevel.checkpoint()
    return password[::-1]


async def program():
    users, answers = {}, []

    async def ask(password):
        answers.append(await register(users, "ann", password))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, "one")
        nursery.start_soon(ask, "two")
    return answers.count(True) == 1
""",
    ),
    "job after the shutdown": (
        ["atomic close submit", "atomic submit"],
        """
class Worker:
    def __init__(self):
        self.jobs, self.done, self.refused, self.closed = [], [], [], False

    async def submit(self, job):
        if self.closed:
            self.refused.append(job)
            return
        await trio.lowlevel.checkpoint()
        self.jobs.append(job)

    async def close(self):
        self.closed = True
        while self.jobs:
            job = self.jobs.pop()
            await trio.lowlevel.checkpoint()
            self.done.append(job)


async def program():
    worker = Worker()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.submit, "report")
        nursery.start_soon(worker.close)
    return worker.done + worker.refused == ["report"]
""",
    ),
    "semaphore leaked by a cancel": (
        ["shielded work"],
        """
async def work(slots, ready):
    await slots.acquire()
    ready.set()
    await trio.lowlevel.checkpoint()  # the headers
    try:
        await trio.lowlevel.checkpoint()
    finally:
        slots.release()


async def program():
    slots, ready = trio.Semaphore(1), trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, slots, ready)
        await ready.wait()
        nursery.cancel_scope.cancel()
    return slots.value == 1
""",
    ),
    "transfer both ways": (
        ["lock_order transfer", "atomic transfer"],
        """
class Account:
    def __init__(self, balance):
        self.balance, self.lock = balance, trio.Lock()


async def transfer(source, target, amount):
    async with source.lock:
        source.balance -= amount
        async with target.lock:
            target.balance += amount


async def program():
    ann, bob = Account(10), Account(10)
    LOCKS[:] = ann.lock, bob.lock
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transfer, ann, bob, 3)
        nursery.start_soon(transfer, bob, ann, 4)
    return (ann.balance, bob.balance) == (11, 9)
""",
    ),
    "served before it was set up": (
        ["before handle start"],
        """
class App:
    def __init__(self):
        self.database = None

    async def start(self):
        await trio.lowlevel.checkpoint()
        self.database = {"ann": 1}

    async def handle(self, name):
        return self.database[name]


async def program():
    app = App()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(app.start)
        nursery.start_soon(app.handle, "ann")
    return True
""",
    ),
    "older session wins": (
        ["atomic reconnect"],
        """
class Client:
    def __init__(self):
        self.session, self.opened, self.closed = None, 0, 0

    async def dial(self):
        self.opened += 1
        number = self.opened
        await trio.lowlevel.checkpoint()
        return number

    async def reconnect(self):
        if self.session is None:
            session = await self.dial()
            self.session = session

    async def close(self):
        if self.session is not None:
            self.closed += 1


async def program():
    client = Client()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.reconnect)
        nursery.start_soon(client.reconnect)
    await client.close()
    return client.opened == client.closed
""",
    ),
    "more than the rate": (
        ["atomic take"],
        """
class Bucket:
    def __init__(self, tokens):
        self.tokens, self.given = tokens, 0

    async def take(self):
        left = self.tokens
        if left > 0:
            await trio.lowlevel.checkpoint()
            self.tokens = left - 1
            self.given += 1


async def program():
    bucket = Bucket(1)
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(bucket.take)
    return bucket.given == 1
""",
    ),
    "half of a configuration": (
        ["atomic connect reload"],
        """
SETTINGS = {"host": "old", "port": 1}


async def reload(host, port):
    SETTINGS["host"] = host
    await trio.lowlevel.checkpoint()
    SETTINGS["port"] = port


async def connect(made):
    made.append((SETTINGS["host"], SETTINGS["port"]))


async def program():
    SETTINGS.update(host="old", port=1)
    made = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reload, "new", 2)
        nursery.start_soon(connect, made)
    return made in ([("old", 1)], [("new", 2)])
""",
    ),
    "metric lost in a flush": (
        ["atomic flush record"],
        """
async def record(buffer, value):
    buffer.append(value)


async def flush(buffer, sent):
    batch = list(buffer)
    await trio.lowlevel.checkpoint()  # over the wire
    sent.extend(batch)
    buffer.clear()


async def program():
    buffer, sent = ["boot"], []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(record, buffer, "load")
        nursery.start_soon(flush, buffer, sent)
    return sorted(buffer + sent) == ["boot", "load"]
""",
    ),
    "subscriber skipped": (
        ["atomic leave publish"],
        """
class Topic:
    def __init__(self, names):
        self.names, self.told = names, []

    async def publish(self):
        place = 0
        while place < len(self.names):
            self.told.append(self.names[place])
            await trio.lowlevel.checkpoint()
            place += 1

    async def leave(self, name):
        self.names.remove(name)


async def program():
    topic = Topic(["ann", "bob"])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(topic.publish)
        nursery.start_soon(topic.leave, "ann")
    return "bob" in topic.told
""",
    ),
    "one free slot for two": (
        ["again enter"],
        """
class Room:
    def __init__(self):
        self.changed, self.inside, self.most = trio.Condition(), 1, 1

    async def enter(self):
        async with self.changed:
            if self.inside:
                await self.changed.wait()
            self.inside += 1
            self.most = max(self.most, self.inside)

    async def leave(self):
        async with self.changed:
            self.inside -= 1
            self.changed.notify_all()


async def visit(room):
    await room.enter()
    await room.leave()


async def program():
    room = Room()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(visit, room)
        nursery.start_soon(visit, room)
        nursery.start_soon(room.leave)
    return room.most == 1
""",
    ),
    "temporary file left behind": (
        ["shielded upload"],
        """
async def upload(files, ready):
    files.append("part")
    try:
        ready.set()
        await trio.lowlevel.checkpoint()
    finally:
        await trio.lowlevel.checkpoint()  # asks the disk
        files.remove("part")


async def program():
    files, ready = [], trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(upload, files, ready)
        await ready.wait()
        nursery.cancel_scope.cancel()
    return files == []
""",
    ),
    "a lock held while it sends": (
        [],
        """
async def produce(lock, send):
    async with lock, send:
        await send.send("item")


async def consume(lock, receive, got):
    async with lock:
        got.append("ready")
    async for item in receive:
        got.append(item)


async def program():
    lock, got = trio.Lock(), []
    send, receive = trio.open_memory_channel(0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(produce, lock, send)
        nursery.start_soon(consume, lock, receive, got)
    return got == ["ready", "item"]
""",
    ),
}


def module_of(text: str, path: Path) -> ModuleType:
    """Write a text to `path`, and import it under that name; who calls takes it out of `sys.modules` again."""
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def explored(module: ModuleType) -> sim.Report:
    """Explore its program."""
    return sim.explore(module.program, sim.DPOR(), lambda execution: execution.value is True, track=[module.__name__])


def judged(code: str | None, right: list[str]) -> str:
    """Say whether a constraint (`.code`; None: there is none) is of a right kind and about the right functions."""
    if code is None:
        return "none, as is right" if not right else "none"
    kind, functions = code.partition("(")[0].removeprefix("sim."), set(re.findall(r"[a-zA-Z_]\w*(?=, \d)", code))
    wanted = [set(one.split()[1:]) for one in right if one.split()[0] == kind]
    if functions in wanted:
        return "right"
    return "right, with more lines" if any(one < functions for one in wanted) else "another"
