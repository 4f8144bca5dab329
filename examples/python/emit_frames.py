"""Prints one message of each kind as a line: a name, then its frames in hex.

Why this file: a reader that shares no code with wire.py (the server's own
decoder, in core/wire/python_test.go) holds these lines against what they are
meant to say.
"""

import wire
import wrapper

ID = 0x1234567890ABCDEF
MODEL = "Qwen/Qwen3-8B"


def messages():
    tokens = list(range(1000, 1512))
    key = wire.key(MODEL, tokens, 256, 512, "request-1", worker=1, world=2, salt="tenant")
    look = wire.key(MODEL, tokens, 0, 512, "request-1", worker=None, world=2)
    shape = (2, 64, 16, 2, 64)
    pickles = [wrapper.pickled("/lmcache_kv_1_%d" % n, 524288, "bfloat16", shape) for n in range(2)]
    yield "chunk-size", wire.request(0, wire.GET_CHUNK_SIZE)
    yield "experimental", wire.request(1, wire.GET_EXPERIMENTAL)
    yield "experimental-other", wire.request(1, wire.GET_EXPERIMENTAL_OTHER)
    yield "register", wire.request(
        2, wire.REGISTER_KV_CACHE, ID, wire.exports(pickles), MODEL, 2, "vllm",
        {"kv_layout": "NHD"}, [wire.group(0, [0, 1], 16)])
    yield "ping", wire.request(127, wire.PING, ID)
    yield "probe", wire.request(128, wire.PING, None)
    yield "old-ping", wire.request(129, wire.PING)
    yield "store", wire.request(3, wire.STORE, key, ID, [[0, 1, 300, 70000]], b"event")
    yield "retrieve", wire.request(4, wire.RETRIEVE, key, ID, [[0, 1], [2]], b"", 16)
    yield "lookup", wire.request(5, wire.LOOKUP, look, 2)
    yield "query", wire.request(6, wire.QUERY_PREFETCH_STATUS, "request-1")
    yield "wait", wire.request(7, wire.WAIT_PREFETCH_STATUS, "request-1", 2.5)
    yield "hits", wire.request(8, wire.QUERY_PREFETCH_LOOKUP_HITS, "request-1")
    yield "free", wire.request(9, wire.FREE_LOOKUP_LOCKS, look, 2)
    yield "end", wire.request(10, wire.END_SESSION, "request-1")
    yield "engine", wire.request(
        11, wire.REGISTER_ENGINE_DRIVEN, wire.engine_driven(ID, MODEL, 16, 2, 128, "float16", world=2, mla=True))
    yield "prepare-store", wire.request(12, wire.PREPARE_STORE, key, ID)
    yield "commit-store", wire.request(13, wire.COMMIT_STORE, key, ID, b"\x80\x04any bytes")
    yield "prepare-retrieve", wire.request(14, wire.PREPARE_RETRIEVE, key, ID)
    yield "commit-retrieve", wire.request(15, wire.COMMIT_RETRIEVE, key, ID)
    yield "unregister-engine", wire.request(16, wire.UNREGISTER_ENGINE_DRIVEN, ID)
    yield "unregister", wire.request(17, wire.UNREGISTER_KV_CACHE, ID)
    yield "clear", wire.request(18, wire.CLEAR)
    yield "noop", wire.request(65536, wire.NOOP)
    yield "report", wire.request(19, wire.REPORT_BLOCK_ALLOCATION, ID, MODEL, [
        {"req_id": "request-1", "new_block_ids": [1, 2], "new_token_ids": [1000, 70000]},
        {"req_id": "request-2", "new_block_ids": [], "new_token_ids": []}])


if __name__ == "__main__":
    for name, frames in messages():
        print(name, *(f.hex() for f in frames))
