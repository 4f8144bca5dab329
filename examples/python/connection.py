"""One DEALER socket towards a server, and calls over it.

Why this file: an LMCache worker has one socket for everything and matches
replies by their uid alone, for they may come in any order. It never sets an
identity, so a reconnect is a new peer to the server.
"""

import itertools
import time

import zmq

import wire


class NoAnswer(Exception):
    """A call got no reply in its time, as a refusal under the document design does."""


class Connection:
    def __init__(self, url, timeout=10.0):
        self.timeout = timeout
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.CONNECT_TIMEOUT, 5000)
        self.socket.setsockopt(zmq.RECONNECT_IVL_MAX, 1000)
        self.socket.connect(url)
        self.uids = itertools.count()
        self.early = {}  # replies that came while another was waited for
        self.waiting = set()

    def submit(self, number, *payloads):
        """Sends a request and returns its uid."""
        uid = next(self.uids)
        self.waiting.add(uid)
        self.socket.send_multipart(wire.request(uid, number, *payloads))
        return uid

    def raw(self, frames):
        """Sends frames as they are; no reply is awaited."""
        self.socket.send_multipart(frames)

    def wait(self, uid, timeout=None):
        """The reply of a request, a wire.Reply."""
        seconds = self.timeout if timeout is None else timeout
        until = time.monotonic() + seconds
        while uid not in self.early:
            left = until - time.monotonic()
            if left <= 0 or not self.socket.poll(left * 1000):
                self.waiting.discard(uid)
                raise NoAnswer("no answer to request %d within %g s" % (uid, seconds))
            reply = wire.Reply(self.socket.recv_multipart())
            if reply.uid in self.waiting:
                self.early[reply.uid] = reply
            # else: it came after its time, or answers a raw message; the real one drops it too
        self.waiting.discard(uid)
        return self.early.pop(uid)

    def ask(self, number, *payloads, timeout=None):
        """A request and its reply."""
        return self.wait(self.submit(number, *payloads), timeout)

    def call(self, number, *payloads, timeout=None):
        """A request and its result; a refusal is an error."""
        reply = self.ask(number, *payloads, timeout=timeout)
        if reply.refused is not None:
            raise AssertionError("%s was refused: %s" % (wire.NAMES.get(number, number), reply.refused))
        return reply.result

    def close(self):
        self.socket.close()
        self.context.term()
