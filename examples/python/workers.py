"""The three ways in which an LMCache worker moves its bytes, each verified.

Why this file: a worker registers, and then a round is: write what nobody has
written before, store it, look it up, retrieve it into another place and
compare every byte - of what was retrieved, and of everything that had to stay
as it was.

    shm      the server opens the worker's shared memory and copies
    engine   the worker copies, through slots of the server's shared pool
    inline   the worker sends its bytes with the commit and gets them back
             with the next prepare; what they are is its own affair
"""

import hashlib
import mmap
import os
import pickle
import time
import uuid

import wire
import wrapper

SHM = "/dev/shm"

MODEL = "example/python-client"
BLOCK_TOKENS = 16
HEADS, HEAD_DIM = 2, 64
LAYERS = 2
DTYPE, DTYPE_BYTES = "float16", 2


class Wrong(AssertionError):
    """Something is not as it has to be."""


def check(is_so, what, *values):
    if not is_so:
        raise Wrong(what % values if values else what)


def new_instance():
    """An instance id as the design document makes it: the low 63 bits of a version 4 UUID."""
    return uuid.uuid4().int & (1 << 63) - 1


def pattern(n, *about):
    """n bytes that only this place of this prompt has."""
    return hashlib.shake_128(repr(about).encode()).digest(n)


class Worker:
    """What the three have in common: start-up, pings, look-ups, prompts."""

    register_number = unregister_number = None

    def __init__(self, connection, salt="", rank=0, world=1, model=MODEL):
        self.connection = connection
        self.instance = new_instance()
        self.salt, self.rank, self.world, self.model = salt, rank, world, model
        self.life = uuid.uuid4().hex[:12]
        self.bytes_verified = 0
        self.chunk = 0

    def start(self):
        """The requests that a worker begins with, and its registration."""
        self.chunk = self.connection.call(wire.GET_CHUNK_SIZE)
        check(isinstance(self.chunk, int) and self.chunk > 0 and self.chunk % BLOCK_TOKENS == 0,
              "a chunk of %r tokens; this client needs a multiple of %d", self.chunk, BLOCK_TOKENS)
        check(self.connection.call(wire.GET_EXPERIMENTAL) == [], "GET_EXPERIMENTAL is not an empty list")
        self.register()

    def ping(self):
        """A heartbeat. A server may say more than true; whatever it says is true as bool() judges it."""
        result = self.connection.call(wire.PING, self.instance)
        check(bool(result), "the ping was answered %r", result)
        return result

    def prompt(self, number, chunks):
        """Token ids that no other prompt of any life begins with."""
        seed = pattern(8 * chunks * self.chunk, self.life, "prompt", number)
        return [int.from_bytes(seed[i:i + 3], "little") for i in range(0, 8 * chunks * self.chunk, 8)]

    def key(self, tokens, first, last, request):
        """The key of the chunks first..last-1 of a prompt."""
        return wire.key(self.model, tokens[:last * self.chunk], first * self.chunk, last * self.chunk, request,
                        worker=self.rank, world=self.world, salt=self.salt)

    def look(self, tokens, chunks, request):
        """What the scheduler asks before it has a worker retrieve: how many whole chunks are there."""
        key = wire.key(self.model, tokens, 0, chunks * self.chunk, request, worker=None, world=self.world, salt=self.salt)
        check(self.connection.call(wire.LOOKUP, key, self.world) is None, "LOOKUP has a result")
        hits = self.connection.call(wire.QUERY_PREFETCH_STATUS, request)
        waited = self.connection.call(wire.WAIT_PREFETCH_STATUS, request, 5.0)
        again = self.connection.call(wire.QUERY_PREFETCH_LOOKUP_HITS, request)
        check(hits == waited == again, "the look-up found %r, %r and %r chunks in three answers", hits, waited, again)
        return hits

    def end(self, request):
        check(self.connection.call(wire.END_SESSION, request) is None, "END_SESSION has a result")

    def round(self, number):
        raise NotImplementedError

    def stop(self):
        """An orderly leave; the memory goes too."""
        self.connection.call(self.unregister_number, self.instance)
        self.release()

    def release(self):
        pass


class ShmWorker(Worker):
    """Server-driven: REGISTER_KV_CACHE, STORE, RETRIEVE."""

    register_number, unregister_number = wire.REGISTER_KV_CACHE, wire.UNREGISTER_KV_CACHE
    serial = 0

    def __init__(self, connection, blocks=128, **about):
        super().__init__(connection, **about)
        self.blocks = blocks
        self.half = BLOCK_TOKENS * HEADS * HEAD_DIM * DTYPE_BYTES  # keys, or values, of one block
        self.shape = (2, blocks, BLOCK_TOKENS, HEADS, HEAD_DIM)
        self.bytes = 2 * blocks * self.half
        self.names, self.memory, self.expected = [], [], []
        for _ in range(LAYERS):
            name = "/lmcache_kv_%d_%d" % (os.getpid(), ShmWorker.serial)
            ShmWorker.serial += 1
            fd = os.open(SHM + name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            self.names.append(name)
            os.ftruncate(fd, self.bytes)
            self.memory.append(mmap.mmap(fd, self.bytes))
            os.close(fd)
            self.expected.append(bytearray(self.bytes))

    def payloads(self):
        pickles = [wrapper.pickled(n, self.bytes, DTYPE, self.shape) for n in self.names]
        return (self.instance, wire.exports(pickles), self.model, self.world, "vllm", {"kv_layout": "NHD"},
                [wire.group(0, range(LAYERS), BLOCK_TOKENS)])

    def register(self):
        check(self.connection.call(self.register_number, *self.payloads()) is None, "REGISTER_KV_CACHE has a result")

    def places(self, block):
        """Where a block's keys and values lie in each tensor."""
        return (block * self.half, (self.blocks + block) * self.half)

    def write(self, number, first_block, blocks):
        """What the engine computed."""
        for layer in range(LAYERS):
            for i in range(blocks):
                for side, at in enumerate(self.places(first_block + i)):
                    data = pattern(self.half, self.life, number, layer, i, side)
                    self.memory[layer][at:at + self.half] = data
                    self.expected[layer][at:at + self.half] = data

    def expect(self, number, first_block, blocks, skip=0):
        """What a retrieve has to bring."""
        for layer in range(LAYERS):
            for i in range(skip, blocks):
                for side, at in enumerate(self.places(first_block + i)):
                    self.expected[layer][at:at + self.half] = pattern(self.half, self.life, number, layer, i, side)

    def verify(self, what):
        """Every byte of every tensor, also of what nobody was to touch."""
        for layer in range(LAYERS):
            got = self.memory[layer][:]
            if got != self.expected[layer]:
                at = next(i for i in range(self.bytes) if got[i] != self.expected[layer][i])
                raise Wrong("%s: byte %d of layer %d (block %d) is %#04x and should be %#04x" % (
                    what, at, layer, at // self.half % self.blocks, got[at], self.expected[layer][at]))
            self.bytes_verified += self.bytes

    def store(self, key, blocks):
        event, ok = self.connection.call(wire.STORE, key, self.instance, [list(blocks)], b"store event")
        check(ok is True, "the store of %d blocks was not kept", len(blocks))
        check(event == b"store event", "the store gave back another event: %r", event)

    def retrieve(self, key, blocks, skip=0):
        event, ok = self.connection.call(wire.RETRIEVE, key, self.instance, [list(blocks)], b"retrieve event", skip)
        return ok

    def round(self, number):
        per = self.chunk // BLOCK_TOKENS
        chunks = max(1, min(2, self.blocks // (3 * per)))
        n = chunks * per
        check(3 * n <= self.blocks, "a round needs %d blocks and this worker has %d", 3 * n, self.blocks)
        tokens, request = self.prompt(number, chunks), "%s-%d" % (self.life, number)
        source, target, other = range(0, n), range(n, 2 * n), range(2 * n, 3 * n)

        check(self.look(tokens, chunks, request) == 0, "a prompt that nobody stored is found")
        check(self.retrieve(self.key(tokens, 0, chunks, request), target) is False, "a prompt that nobody stored is delivered")
        self.verify("after a miss")
        self.write(number, source[0], n)
        self.store(self.key(tokens, 0, chunks, request), source)
        self.verify("after the store")
        check(self.look(tokens, chunks, request) == chunks, "the look-up does not find what was stored")
        check(self.retrieve(self.key(tokens, 0, chunks, request), target), "what was stored is not delivered")
        self.expect(number, target[0], n)
        self.verify("after the retrieve")
        # The first blocks are the engine's own already; a server leaves them alone.
        skip = per // 2
        check(self.retrieve(self.key(tokens, 0, chunks, request), other, skip * BLOCK_TOKENS), "a retrieve that skips missed")
        self.expect(number, other[0], n, skip)
        self.verify("after a retrieve that skips %d tokens" % (skip * BLOCK_TOKENS))
        key = wire.key(self.model, tokens, 0, chunks * self.chunk, request, worker=None, world=self.world, salt=self.salt)
        check(self.connection.call(wire.FREE_LOOKUP_LOCKS, key, self.world) is None, "FREE_LOOKUP_LOCKS has a result")
        report = [{"req_id": request, "new_block_ids": list(target), "new_token_ids": tokens[:4]}]
        check(self.connection.call(wire.REPORT_BLOCK_ALLOCATION, self.instance, self.model, report) is None,
              "REPORT_BLOCK_ALLOCATION has a result")
        self.end(request)
        self.ping()

    def submit_store(self, number):
        """Begins a store and does not wait for its end: for whoever wants to die in it."""
        n = self.chunk // BLOCK_TOKENS
        tokens = self.prompt(number, 1)
        self.write(number, 0, n)
        return self.connection.submit(wire.STORE, self.key(tokens, 0, 1, "%s-%d" % (self.life, number)),
                                      self.instance, [list(range(n))], b"")

    def release(self):
        for name, memory in zip(self.names, self.memory):
            memory.close()
            os.unlink(SHM + name)
        self.names, self.memory = [], []


class EngineWorker(Worker):
    """Engine-driven: PREPARE and COMMIT. The server says at registration whether there is a pool."""

    register_number, unregister_number = wire.REGISTER_ENGINE_DRIVEN, wire.UNREGISTER_ENGINE_DRIVEN
    hidden = HEADS * HEAD_DIM

    def __init__(self, connection, **about):
        super().__init__(connection, **about)
        self.pool = None

    def register(self):
        where = self.connection.call(self.register_number, wire.engine_driven(
            self.instance, self.model, BLOCK_TOKENS, LAYERS, self.hidden, DTYPE, world=self.world))
        check(set(where) >= {"shm_name", "pool_size"}, "the registration's answer is %r", where)
        self.name, self.size = where["shm_name"], where["pool_size"]
        self.chunk_bytes = 2 * LAYERS * self.chunk * self.hidden * DTYPE_BYTES
        self.check_mode()

    def check_mode(self):
        check(self.name, "this server has no shared pool: its engine-driven workers send their bytes inline (--mode inline)")
        check(self.size >= self.chunk_bytes, "the pool has %d bytes and a chunk %d", self.size, self.chunk_bytes)
        if self.pool is None:
            fd = os.open(SHM + self.name, os.O_RDWR)
            self.pool = mmap.mmap(fd, self.size)
            os.close(fd)

    def prepare_store(self, key):
        return self.connection.call(wire.PREPARE_STORE, key, self.instance)["context"]

    def commit_store(self, key, data=b""):
        return self.connection.call(wire.COMMIT_STORE, key, self.instance, data)

    def prepare_retrieve(self, key):
        return self.connection.call(wire.PREPARE_RETRIEVE, key, self.instance)

    def commit_retrieve(self, key):
        return self.connection.call(wire.COMMIT_RETRIEVE, key, self.instance)

    def check_slots(self, slots, count):
        check(len(slots) == count, "%d slots for %d chunks", len(slots), count)
        end = 0
        for s in sorted(slots, key=lambda s: s["offset"]):
            elements = 1
            for n in s["shape"]:
                elements *= n
            check(s["length"] == self.chunk_bytes == elements * DTYPE_BYTES and s["dtype"] == DTYPE,
                  "a slot of %d bytes, shape %r, %r; a chunk has %d", s["length"], s["shape"], s["dtype"], self.chunk_bytes)
            check(s["offset"] >= end, "two slots overlap")
            end = s["offset"] + s["length"]
        check(end <= self.size, "a slot ends at byte %d of a pool of %d", end, self.size)

    def round(self, number):
        chunks = 2
        tokens, request = self.prompt(number, chunks), "%s-%d" % (self.life, number)
        key = self.key(tokens, 0, chunks, request)
        check(self.look(tokens, chunks, request) == 0, "a prompt that nobody stored is found")
        check(self.prepare_retrieve(key)["success"] is False, "a prompt that nobody stored is delivered")

        context = self.prepare_store(key)
        check(context["chunk_indices"] == list(range(chunks)), "slots for the chunks %r", context["chunk_indices"])
        self.check_slots(context["slots"], chunks)
        data = [pattern(self.chunk_bytes, self.life, number, i) for i in range(chunks)]
        for s, i in zip(context["slots"], context["chunk_indices"]):
            self.pool[s["offset"]:s["offset"] + s["length"]] = data[i]
        check(self.prepare_retrieve(key)["success"] is False, "what is not committed is delivered")
        check(self.commit_store(key) is True, "the commit failed")
        again = self.prepare_store(key)
        check(again["slots"] == [] and again["chunk_indices"] == [], "what is there is asked for again: %r", again)

        check(self.look(tokens, chunks, request) == chunks, "the look-up does not find what was committed")
        found = self.prepare_retrieve(key)
        check(found["success"] is True, "what was committed is not delivered")
        self.check_slots(found["context"]["slots"], chunks)
        for i, s in enumerate(found["context"]["slots"]):
            check(self.pool[s["offset"]:s["offset"] + s["length"]] == data[i], "chunk %d has other bytes than were stored", i)
            self.bytes_verified += s["length"]
        check(self.commit_retrieve(key) is True, "the retrieve could not be committed")
        # A shorter range of the same prompt is there too.
        part = self.key(tokens, 0, 1, request)
        found = self.prepare_retrieve(part)
        check(found["success"] is True and len(found["context"]["slots"]) == 1, "the first chunk alone is not delivered")
        check(self.commit_retrieve(part) is True, "the retrieve could not be committed")
        self.end(request)
        self.ping()

    def submit_store(self, number):
        """Prepares a store and leaves it: for whoever wants to die in it."""
        key = self.key(self.prompt(number, 1), 0, 1, "%s-%d" % (self.life, number))
        return self.connection.submit(wire.PREPARE_STORE, key, self.instance)

    def release(self):
        if self.pool is not None:
            self.pool.close()
            self.pool = None


class Trap:
    """An object whose unpickling would leave a file behind. A server that keeps bytes without reading them never makes it."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (self.path,))


class InlineWorker(EngineWorker):
    """Engine-driven without a pool: the bytes travel with the commit, and are nobody's business on the way."""

    def check_mode(self):
        check(self.name == "", "this server has a shared pool (%s): its engine-driven workers use it (--mode engine)", self.name)

    def blob(self, number, chunks):
        """What the real one sends is a pickle of tensors; this one's would betray whoever unpickled it."""
        self.trap = "/tmp/vigil-unpickled-%d-%d" % (os.getpid(), number)
        return pickle.dumps(Trap(self.trap), protocol=4) + pattern(chunks * self.chunk_bytes, self.life, number)

    def round(self, number):
        chunks = 2
        tokens, request = self.prompt(number, chunks + 1), "%s-%d" % (self.life, number)
        key = self.key(tokens, 0, chunks, request)
        check(self.look(tokens, chunks, request) == 0, "a prompt that nobody stored is found")
        miss = self.prepare_retrieve(key)
        check(miss["success"] is False and miss["data"] == b"", "a prompt that nobody stored is delivered")

        check(self.prepare_store(key) == {}, "a server without a pool must ask for the bytes inline")
        data = self.blob(number, chunks)
        check(self.commit_store(key, data) is True, "the commit failed")
        check(self.commit_store(key, data) is True, "the same commit once more failed")
        check(self.look(tokens, chunks, request) == chunks, "the look-up does not find what was committed")
        found = self.prepare_retrieve(key)
        check(found["success"] is True, "what was committed is not delivered")
        check(found["data"] == data, "%d bytes came back, and not those %d that were stored", len(found["data"]), len(data))
        self.bytes_verified += len(data)
        check(self.commit_retrieve(key) is True, "the retrieve could not be committed")
        # Bytes that nobody can read cannot be cut either: another range is a miss.
        for first, last in ((0, 1), (1, 2), (0, 3)):
            other = self.prepare_retrieve(self.key(tokens, first, last, request))
            check(other["success"] is False and other["data"] == b"", "chunks %d to %d were never stored as one", first, last)
        check(self.commit_store(self.key(tokens, 0, 1, request), b"") is False, "a commit of nothing succeeded")
        if os.path.exists(self.trap):
            os.rmdir(self.trap)
            raise Wrong("the server unpickled what it was to keep")
        self.end(request)
        self.ping()


MODES = {"shm": ShmWorker, "engine": EngineWorker, "inline": InlineWorker}


def heartbeat(worker, seconds, interval):
    """Stays alive for a time, pinging as a worker's heartbeat thread does."""
    until = time.monotonic() + seconds
    pings = 0
    while time.monotonic() < until:
        worker.ping()
        pings += 1
        time.sleep(min(interval, max(0.0, until - time.monotonic())))
    return pings
