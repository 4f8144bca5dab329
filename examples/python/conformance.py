#!/usr/bin/python3
"""Runs everything that an LMCache worker asks of a server against a running one, and prints a table.

A check that the server's settings rule out (a pool, or none) is skipped and
says so. Exit 0 only where no check failed, and every check that --need names
was run.
"""

import argparse
import glob
import json
import os
import signal
import subprocess
import sys
import time

import wire
from connection import Connection, NoAnswer
from workers import SHM, EngineWorker, InlineWorker, ShmWorker, Wrong, check, new_instance

HERE = os.path.dirname(os.path.abspath(__file__))
CHECKS = []


class Skip(Exception):
    """The check does not apply here."""


def conformance(name):
    def add(f):
        CHECKS.append((name, f))
        return f
    return add


class Bench:
    """One server, and what is known of it."""

    def __init__(self, args):
        self.args = args
        self.url = args.connect
        self.terminal = args.design == "hardened"

    def connect(self, timeout=10.0):
        return Connection(self.url, timeout)

    def mode(self):
        """Whether engine-driven workers use a pool here."""
        c = self.connect()
        try:
            w = EngineWorker(c)
            w.check_mode = lambda: None
            w.start()
            w.stop()
            return "engine" if w.name else "inline"
        finally:
            c.close()

    def ends(self, connection, number, *payloads, says=None):
        """A request that has to be refused: terminal, or in silence under the document design."""
        began = time.monotonic()
        try:
            reply = connection.ask(number, *payloads, timeout=2.0 if self.terminal else 0.3)
        except NoAnswer:
            check(not self.terminal, "%s has no answer; a hardened server's refusals are terminal", wire.NAMES.get(number, number))
            return None
        check(self.terminal, "%s is answered %r; the document design is silent", wire.NAMES.get(number, number), reply.result)
        check(reply.refused is not None, "%s is answered %r and not refused", wire.NAMES.get(number, number), reply.result)
        if says:
            check(reply.refused == says, "%s is refused as %s and should be as %s", wire.NAMES.get(number, number), reply.refused, says)
        check(time.monotonic() - began < 1.0, "the refusal took %.1f s", time.monotonic() - began)
        return reply


@conformance("start-up: chunk size, no experimental modules, at once")
def start_up(b):
    c = b.connect()
    chunk = c.call(wire.GET_CHUNK_SIZE)
    check(isinstance(chunk, int) and chunk > 0, "a chunk of %r tokens", chunk)
    for number in (wire.GET_EXPERIMENTAL, wire.GET_EXPERIMENTAL_OTHER):
        began = time.monotonic()
        check(c.call(number) == [], "GET_EXPERIMENTAL as %d is not an empty list", number)
        check(time.monotonic() - began < 1.0, "GET_EXPERIMENTAL as %d took %.1f s", number, time.monotonic() - began)
    check(c.call(wire.NOOP) == "OK", "NOOP is not OK")
    c.close()
    return "chunks of %d tokens" % chunk


@conformance("pings: a prober, a stranger, a worker; each true")
def pings(b):
    c = b.connect()
    for about in (None, new_instance(), 42, 2**63 - 1):
        check(bool(c.call(wire.PING, about)), "a ping of %r is not true", about)
    c.close()


@conformance("version skew: a ping without an id is refused")
def skew(b):
    c = b.connect()
    b.ends(c, wire.PING, says="payload-count")
    check(bool(c.call(wire.PING, None)), "the connection is of no use after it")
    c.close()


@conformance("shared memory: register, store, look up, retrieve, verify")
def shm(b):
    return rounds(b, ShmWorker)


@conformance("engine-driven through the pool: prepare, commit, verify")
def engine(b):
    if b.mode() != "engine":
        raise Skip("this server has no shared pool")
    return rounds(b, EngineWorker)


@conformance("engine-driven inline: kept and given back, never unpickled")
def inline(b):
    if b.mode() != "inline":
        raise Skip("this server has a shared pool")
    return rounds(b, InlineWorker)


def rounds(b, kind):
    c = b.connect()
    w = kind(c)
    try:
        w.start()
        for n in range(b.args.rounds):
            w.round(n)
        w.stop()
    finally:
        w.release()
        c.close()
    return "%d rounds, %.1f MiB verified" % (b.args.rounds, w.bytes_verified / 2**20)


@conformance("a second register of the same memory changes nothing")
def again(b):
    c = b.connect()
    w = ShmWorker(c)
    try:
        w.start()
        w.round(0)
        w.register()
        w.round(1)
        w.stop()
    finally:
        w.release()
        c.close()


@conformance("two workers of one model share; another salt does not")
def shared(b):
    cs = [b.connect() for _ in range(3)]
    writer, reader, stranger = ShmWorker(cs[0]), ShmWorker(cs[1]), ShmWorker(cs[2], salt="somebody-else")
    try:
        for w in (writer, reader, stranger):
            w.start()
        tokens, n = writer.prompt(0, 1), writer.chunk // 16
        writer.write(0, 0, n)
        writer.store(writer.key(tokens, 0, 1, "shared"), range(n))
        for w, found in ((reader, True), (stranger, False)):
            w.life = writer.life  # whose pattern is expected
            got = w.retrieve(w.key(tokens, 0, 1, "shared"), range(n, 2 * n))
            check(got is found, "the %s got %r", "reader" if found else "stranger", got)
            if found:
                w.expect(0, n, n)
            w.verify("after somebody else's store")
        writer.stop()
        check(reader.retrieve(reader.key(tokens, 0, 1, "shared"), range(2 * n, 3 * n)), "gone with its writer")
        reader.expect(0, 2 * n, n)
        reader.verify("after the writer left")
        reader.stop()
        stranger.stop()
    finally:
        for w in (writer, reader, stranger):
            w.release()
        for c in cs:
            c.close()


@conformance("several requests in flight on one connection")
def in_flight(b):
    c = b.connect()
    w = ShmWorker(c)
    try:
        w.start()
        n = w.chunk // 16
        prompts = [w.prompt(i, 1) for i in range(4)]
        for i in range(4):
            w.write(i, i * n, n)
        uids = [c.submit(wire.STORE, w.key(p, 0, 1, "r%d" % i), w.instance, [list(range(i * n, (i + 1) * n))], b"%d" % i)
                for i, p in enumerate(prompts)]
        uids.append(c.submit(wire.PING, w.instance))
        check(bool(c.wait(uids[-1]).result), "the ping among them")
        for i, uid in reversed(list(enumerate(uids[:4]))):
            check(c.wait(uid).result == [b"%d" % i, True], "store %d", i)
        for i, p in enumerate(prompts):
            check(w.retrieve(w.key(p, 0, 1, "r%d" % i), range(4 * n, 5 * n)), "retrieve %d", i)
            w.expect(i, 4 * n, n)
            w.verify("retrieve %d" % i)
        w.stop()
    finally:
        w.release()
        c.close()


@conformance("requests without a registration end, and say why")
def unregistered(b):
    c = b.connect()
    chunk = c.call(wire.GET_CHUNK_SIZE)
    key = wire.key("m", range(chunk), 0, chunk, "r")
    nobody = new_instance()
    for number, payloads, form in (
            (wire.STORE, (key, nobody, [[0]], b""), [b"", False]),
            (wire.RETRIEVE, (key, nobody, [[0]], b"", 0), [b"", False]),
            (wire.COMMIT_STORE, (key, nobody, b""), False),
            (wire.COMMIT_STORE, (key, nobody, b"inline"), False),
            (wire.COMMIT_RETRIEVE, (key, nobody), False),
            (wire.PREPARE_RETRIEVE, (key, nobody), {"success": False, "data": b"", "context": {}})):
        reply = b.ends(c, number, *payloads, says="not-registered")
        if reply:
            check(reply.result == form, "%s is refused with %r", wire.NAMES[number], reply.result)
    for number in (wire.UNREGISTER_KV_CACHE, wire.UNREGISTER_ENGINE_DRIVEN):
        check(c.ask(number, nobody).result is None, "%s of nobody has a result", wire.NAMES[number])
    check(c.call(wire.END_SESSION, "nobody's") is None, "END_SESSION of nobody has a result")
    check(c.call(wire.QUERY_PREFETCH_STATUS, "nobody's") is None, "a look-up that nobody made has a result")
    check(c.call(wire.WAIT_PREFETCH_STATUS, "nobody's", 0.05) is None, "a wait for nothing has a result")
    c.close()


@conformance("what is no request is counted, and the next one is served")
def garbage(b):
    c = b.connect()
    bad = [
        [b""], [b"\x00"], [b"", b""], [b"\x00", b"\xc1"], [b"\x00", b"\x00"], [b"\x00", wire.pack(250)],
        [b"\x00", wire.pack("no.such.operation"), b"\x00"], [b"\x00", wire.pack(-1)],
        [wire.pack(10**6), wire.pack(wire.STORE), b"\x93"], [b"\x00"] * 40, [b"\x00", wire.pack(wire.PING), b"\xdd\xff\xff\xff\xff"],
        [b"\x00", wire.pack(wire.LOOKUP), b"\x81" * 5000, b"\x01"], [b"\x00", wire.pack(wire.PING), wire.pack(2**64 - 1)],
        [b"\x00", wire.pack(wire.REGISTER_KV_CACHE), b"\x01", b"\x91\xc7\x04\x01\x80\x04N.", b"\xa1m", b"\x01", b"\xa4vllm", b"\x80", b"\x90"],
    ]
    for i, frames in enumerate(bad):
        c.raw(frames)
        fresh = b.connect()  # a flood of bad frames may cost their own connection only
        check(bool(fresh.call(wire.PING, None)), "message %d of them ended the server", i)
        fresh.close()
    c.close()
    return "%d messages" % len(bad)


@conformance("memory that is not there, or too small, is refused")
def bad_memory(b):
    c = b.connect()
    w = ShmWorker(c)
    try:
        names, w.names = w.names, ["/lmcache_kv_none_%d" % i for i in range(2)]
        b.ends(c, wire.REGISTER_KV_CACHE, *w.payloads(), says="open-failed")
        w.names = ["/../../etc/passwd", "/../../etc/passwd"]
        b.ends(c, wire.REGISTER_KV_CACHE, *w.payloads())
        w.names = names
        os.truncate(SHM + names[0], w.bytes // 2)
        b.ends(c, wire.REGISTER_KV_CACHE, *w.payloads(), says="open-failed")
        os.truncate(SHM + names[0], w.bytes)
        check(bool(w.ping()), "the ping after it")
    finally:
        w.names = names
        w.release()
        c.close()


@conformance("a worker killed -9 in a store: its memory is given back")
def killed(b):
    return die(b, "shm", [])


@conformance("a worker killed -9 while it is idle: the same")
def killed_idle(b):
    return die(b, "shm", ["--die-idle"])


@conformance("an engine-driven worker killed -9: what it prepared is swept")
def killed_engine(b):
    return die(b, b.mode(), [])


def die(b, mode, more):
    began = time.monotonic()
    p = subprocess.run(
        [sys.executable, os.path.join(HERE, "vigil_client.py"), "--connect", b.url, "--mode", mode, "--rounds", "1", "--die-after", "1"] + more,
        stdout=subprocess.PIPE, text=True, timeout=60)
    said = [json.loads(line) for line in p.stdout.splitlines()]
    segments = said[0].get("segments", []) if said else []
    try:
        check(p.returncode == -signal.SIGKILL and said and said[-1]["event"] == "dying",
              "it ended with %d after %r", p.returncode, said[-1] if said else None)
        c = b.connect()
        check(bool(c.call(wire.PING, None)), "the server after it")
        c.close()
        if b.args.server_pid and segments:
            check(b.args.reap_within > 0, "--server-pid needs --reap-within")
            while held(b.args.server_pid, segments):
                check(time.monotonic() - began < b.args.reap_within, "the server still maps %s, %.1f s after the kill",
                      ", ".join(segments), time.monotonic() - began)
                time.sleep(0.05)
            return "mapped no more after %.1f s" % (time.monotonic() - began)
        return "not watched: --server-pid" if segments else ""
    finally:
        for name in segments:  # a worker that is killed cannot; nobody else knows that they are its own
            if os.path.exists(SHM + name):
                os.unlink(SHM + name)


def held(pid, segments):
    """Whether a process maps one of these segments."""
    with open("/proc/%d/maps" % pid) as f:
        maps = f.read()
    return any(SHM + s in maps for s in segments)


@conformance("CLEAR forgets what nobody uses")
def clear(b):
    if not b.args.clear:
        raise Skip("it empties the server's store: --clear")
    c = b.connect()
    w = ShmWorker(c)
    try:
        w.start()
        n, tokens = w.chunk // 16, w.prompt(0, 1)
        w.write(0, 0, n)
        w.store(w.key(tokens, 0, 1, "r"), range(n))
        check(w.look(tokens, 1, "r") == 1, "what was stored is not found")
        w.end("r")
        check(c.call(wire.CLEAR) is None, "CLEAR has a result")
        check(w.look(tokens, 1, "r") == 0, "what was cleared is found")
        w.end("r")
        w.stop()
    finally:
        w.release()
        c.close()


@conformance("nothing of this run is left")
def left(b):
    ours = [p for p in glob.glob(SHM + "/lmcache_kv_%d_*" % os.getpid())]
    check(not ours, "segments are left: %s", ", ".join(ours))
    if b.args.server_pid:
        maps = [line.split()[-1] for line in open("/proc/%d/maps" % b.args.server_pid) if SHM + "/lmcache_kv_" in line]
        check(not maps, "the server still maps %s", ", ".join(maps))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--connect", required=True, metavar="URL")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--design", choices=("hardened", "document"), default="hardened", help="how the server refuses (default hardened)")
    p.add_argument("--server-pid", type=int, default=0, metavar="PID", help="watch /proc/PID/maps of the server")
    p.add_argument("--reap-within", type=float, default=0.0, metavar="SECONDS",
                   help="real time in which a killed worker's memory has to be given back")
    p.add_argument("--clear", action="store_true", help="also send CLEAR, which empties the server's store")
    p.add_argument("--only", default="", metavar="TEXT", help="checks whose name holds this")
    p.add_argument("--need", default="", metavar="TEXT", help="a check whose name holds this must not be skipped")
    a = p.parse_args()

    b, results = Bench(a), []
    for name, f in CHECKS:
        if a.only not in name:
            continue
        began = time.monotonic()
        try:
            note, verdict = f(b) or "", "ok"
        except Skip as e:
            note, verdict = str(e), "skipped"
            if a.need and a.need in name:
                verdict, note = "FAILED", "must not be skipped: " + note
        except (Wrong, NoAnswer, AssertionError, OSError, KeyError, ValueError, TypeError, subprocess.TimeoutExpired) as e:
            note, verdict = str(e) or type(e).__name__, "FAILED"
        results.append((verdict, name, time.monotonic() - began, note))
        print("%-8s %-62s %6.2f s  %s" % (results[-1]), flush=True)
    failed = sum(r[0] == "FAILED" for r in results)
    print("%d checks: %d ok, %d skipped, %d failed" % (
        len(results), sum(r[0] == "ok" for r in results), sum(r[0] == "skipped" for r in results), failed))
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
