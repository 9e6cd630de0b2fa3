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
    "older answer is shown": (
        [],
        """
async def search(box, query, hits):
    box["asked"] = query
    await trio.lowlevel.checkpoint()  # the server
    for _ in range(hits):
        await trio.lowlevel.checkpoint()
    box["shown"] = query


async def program():
    box = {}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(search, box, "te", 1)
        nursery.start_soon(search, box, "tea", 0)
    return box["shown"] == box["asked"]
""",
    ),
    "opened while it is closed": (
        ["atomic acquire release"],
        """
class Shared:
    def __init__(self):
        self.users, self.is_open, self.broken = 0, False, False

    async def acquire(self):
        if self.users == 0:
            await trio.lowlevel.checkpoint()
            self.is_open = True
        self.users += 1

    async def release(self):
        self.users -= 1
        if self.users == 0:
            await trio.lowlevel.checkpoint()
            self.is_open = False


async def use(shared):
    await shared.acquire()
    await trio.lowlevel.checkpoint()
    if not shared.is_open:
        shared.broken = True
    await shared.release()


async def program():
    shared = Shared()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(use, shared)
        nursery.start_soon(use, shared)
    return not shared.broken
""",
    ),
    "reserved for ever": (
        ["shielded order"],
        """
class Stock:
    def __init__(self):
        self.free, self.reserved, self.sold = 1, 0, 0

    async def order(self, begun):
        self.free -= 1
        self.reserved += 1
        begun.set()
        await trio.lowlevel.checkpoint()  # the payment
        self.reserved -= 1
        self.sold += 1


async def program():
    stock, begun = Stock(), trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stock.order, begun)
        await begun.wait()
        nursery.cancel_scope.cancel()
    return stock.reserved == 0
""",
    ),
    "two limits": (
        ["lock_order upload", "lock_order download", "lock_order download upload", "atomic download upload"],
        """
async def upload(disk, network):
    async with disk:
        await trio.lowlevel.checkpoint()
        async with network:
            pass


async def download(disk, network):
    async with network:
        async with disk:
            pass


async def program():
    disk, network = trio.Semaphore(1), trio.Semaphore(1)
    LOCKS[:] = disk, network
    async with trio.open_nursery() as nursery:
        nursery.start_soon(upload, disk, network)
        nursery.start_soon(download, disk, network)
    return True
""",
    ),
    "ready before it is": (
        ["before connect serve"],
        """
class Server:
    def __init__(self):
        self.ready, self.port = trio.Event(), None

    async def serve(self):
        self.ready.set()
        await trio.lowlevel.checkpoint()  # binds
        self.port = 80

    async def connect(self, to):
        await self.ready.wait()
        to.append(self.port)


async def program():
    server, to = Server(), []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.serve)
        nursery.start_soon(server.connect, to)
    return to == [80]
""",
    ),
    "a look in a helper": (
        ["atomic buy"],
        """
class Shop:
    def __init__(self):
        self.left, self.sold = 1, []

    def has_any(self):
        return self.left > 0

    def hand_out(self, name):
        self.left -= 1
        self.sold.append(name)

    async def buy(self, name):
        if self.has_any():
            await trio.lowlevel.checkpoint()  # pays
            self.hand_out(name)


async def program():
    shop = Shop()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(shop.buy, "ann")
        nursery.start_soon(shop.buy, "bob")
    return len(shop.sold) == 1
""",
    ),
    "a sum over an await": (
        ["atomic crawl"],
        """
class Crawler:
    def __init__(self):
        self.total = 0

    async def size(self, page):
        await trio.lowlevel.checkpoint()
        return len(page)

    async def crawl(self, page):
        self.total += await self.size(page)


async def program():
    crawler = Crawler()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(crawler.crawl, "aa")
        nursery.start_soon(crawler.crawl, "bbb")
    return crawler.total == 5
""",
    ),
    "handled twice": (
        ["atomic work"],
        """
class Jobs:
    def __init__(self, items):
        self.items, self.next, self.handled = items, 0, []

    async def work(self):
        while self.next < len(self.items):
            item = self.items[self.next]
            await trio.lowlevel.checkpoint()
            self.handled.append(item)
            self.next += 1


async def program():
    jobs = Jobs(["a"])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(jobs.work)
        nursery.start_soon(jobs.work)
    return jobs.handled == ["a"]
""",
    ),
    "closed by the first that is done": (
        [],
        """
async def produce(send, item):
    await send.send(item)
    await send.aclose()


async def program():
    send, receive = trio.open_memory_channel(2)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(produce, send, "a")
        nursery.start_soon(produce, send, "b")
    return sorted([item async for item in receive]) == ["a", "b"]
""",
    ),
    "a token that is refreshed twice": (
        ["atomic request"],
        """
class Session:
    def __init__(self):
        self.token, self.valid, self.refused = 0, 1, 0

    async def refresh(self):
        await trio.lowlevel.checkpoint()
        self.valid += 1
        self.token = self.valid
        return self.token

    async def request(self):
        token = self.token
        if token != self.valid:
            token = await self.refresh()
        await trio.lowlevel.checkpoint()
        if token != self.valid:
            self.refused += 1


async def program():
    session = Session()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(session.request)
        nursery.start_soon(session.request)
    return session.refused == 0
""",
    ),
    "a file while it is written": (
        ["atomic read save"],
        """
async def save(disk, text):
    disk["notes"] = ""
    await trio.lowlevel.checkpoint()
    disk["notes"] = text


async def read(disk, seen):
    seen.append(disk["notes"])


async def program():
    disk, seen = {"notes": "old"}, []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(save, disk, "new")
        nursery.start_soon(read, disk, seen)
    return seen in (["old"], ["new"])
""",
    ),
    "used while it is evicted": (
        ["atomic evict use"],
        """
class Cache:
    def __init__(self):
        self.entries, self.errors = {"a": {"open": True}}, 0

    async def evict(self, key):
        entry = self.entries[key]
        entry["open"] = False
        await trio.lowlevel.checkpoint()  # flushes
        del self.entries[key]

    async def use(self, key):
        if key in self.entries:
            entry = self.entries[key]
            if not entry["open"]:
                self.errors += 1


async def program():
    cache = Cache()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cache.evict, "a")
        nursery.start_soon(cache.use, "a")
    return cache.errors == 0
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
