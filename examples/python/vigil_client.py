#!/usr/bin/python3
"""An independent worker: registers memory, stores, retrieves, verifies every byte, leaves - or dies.

It speaks the bytes of an LMCache worker and shares no code with the server.
Prints one JSON object a line; exit 0 only where everything was verified.
"""

import argparse
import json
import os
import signal
import sys
import time

from connection import Connection, NoAnswer
from workers import MODES, Wrong, heartbeat


def say(event, **about):
    print(json.dumps({"event": event, **about}), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--connect", required=True, metavar="URL", help="for example tcp://127.0.0.1:5555 or ipc:///tmp/vigil")
    p.add_argument("--mode", choices=sorted(MODES), default="shm", help="who moves the bytes, and how (default shm)")
    p.add_argument("--rounds", type=int, default=3, metavar="N", help="store, retrieve and verify so many times (default 3)")
    p.add_argument("--die-after", type=int, metavar="N", help="SIGKILL itself after N rounds, with a store under way")
    p.add_argument("--die-idle", action="store_true", help="with --die-after: no store is under way")
    p.add_argument("--hold", type=float, default=0.0, metavar="SECONDS", help="after the rounds stay, and ping")
    p.add_argument("--interval", type=float, default=10.0, metavar="SECONDS", help="between two pings of --hold (default 10)")
    p.add_argument("--timeout", type=float, default=10.0, metavar="SECONDS", help="of each request (default 10)")
    p.add_argument("--salt", default="", help="keeps what is stored apart from others'")
    a = p.parse_args()

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the memory goes
    worker = None
    try:
        worker = MODES[a.mode](Connection(a.connect, a.timeout), salt=a.salt)
        began = time.monotonic()
        worker.start()
        say("registered", mode=a.mode, instance=worker.instance, pid=os.getpid(), chunk_tokens=worker.chunk,
            segments=getattr(worker, "names", []), seconds=round(time.monotonic() - began, 6))
        for n in range(a.rounds):
            if n == a.die_after:
                break
            began, had = time.monotonic(), worker.bytes_verified
            worker.round(n)
            say("round", round=n, bytes_verified=worker.bytes_verified - had, seconds=round(time.monotonic() - began, 6))
        if a.die_after is not None:
            if not a.die_idle:
                worker.submit_store(a.rounds)
                time.sleep(0.002)  # so that it leaves this process
            say("dying", instance=worker.instance, pid=os.getpid())
            os.kill(os.getpid(), signal.SIGKILL)
        if a.hold > 0:
            say("held", pings=heartbeat(worker, a.hold, a.interval))
        worker.stop()
        say("done", rounds=a.rounds, bytes_verified=worker.bytes_verified)
        worker = None
        return 0
    except (Wrong, NoAnswer, AssertionError, OSError) as e:
        say("failed", error=str(e) or type(e).__name__)
        return 1
    finally:
        if worker is not None:
            worker.release()


if __name__ == "__main__":
    sys.exit(main())
