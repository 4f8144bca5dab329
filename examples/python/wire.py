"""The bytes of an LMCache worker: requests as frames, replies as values.

Why this file: it is the whole of the wire in a page, with nothing of ours
behind it and no socket in it, so that a test can hold it against captured
bytes (test_wire.py) and another program can read what it wrote
(emit_frames.py).

A request is a list of frames: a uid, a request number, and one frame for each
payload, every one a msgpack document of its own. A reply echoes the first two
and carries at most one result.
"""

import msgpack

# The frozen request numbers. GET_EXPERIMENTAL has two, by version of LMCache.
REGISTER_KV_CACHE = 1
UNREGISTER_KV_CACHE = 2
STORE = 6
RETRIEVE = 7
LOOKUP = 8
QUERY_PREFETCH_STATUS = 9
WAIT_PREFETCH_STATUS = 10
QUERY_PREFETCH_LOOKUP_HITS = 11
FREE_LOOKUP_LOCKS = 12
END_SESSION = 13
REGISTER_ENGINE_DRIVEN = 14
UNREGISTER_ENGINE_DRIVEN = 15
PREPARE_STORE = 16
COMMIT_STORE = 17
PREPARE_RETRIEVE = 18
COMMIT_RETRIEVE = 19
CLEAR = 20
GET_CHUNK_SIZE = 21
PING = 22
REPORT_BLOCK_ALLOCATION = 23
NOOP = 24
GET_EXPERIMENTAL_OTHER = 32
GET_EXPERIMENTAL = 40

NAMES = {number: name for name, number in list(globals().items()) if name.isupper() and isinstance(number, int)}

# The extension type of a pickled memory wrapper.
EXT_WRAPPER = 1

# What a server with terminal answers puts behind the result of a refusal.
REFUSED = "vigil.refused:"


def pack(value):
    """One frame. Integers and texts in their shortest form, as msgspec writes them."""
    return msgpack.packb(value, use_bin_type=True)


def unpack(frame):
    """One frame's value. Text must be UTF-8 and bytes stay bytes."""
    return msgpack.unpackb(frame, raw=False, strict_map_key=False)


def request(uid, number, *payloads):
    """The frames of a request; a number may be a text, for a named operation."""
    return [pack(uid), pack(number)] + [pack(p) for p in payloads]


class Reply:
    """A reply. result is None where there is none; refused is the server's word, if it gave one."""

    def __init__(self, frames):
        if len(frames) < 2:
            raise ValueError("a reply of %d frames; it has at least a uid and a type" % len(frames))
        self.uid = unpack(frames[0])
        self.type = unpack(frames[1])
        self.result = unpack(frames[2]) if len(frames) > 2 else None
        self.refused = None
        if len(frames) > 3:  # an LMCache worker ignores it
            try:
                word = unpack(frames[3])
            except Exception:
                word = None
            if isinstance(word, str) and word.startswith(REFUSED):
                self.refused = word[len(REFUSED):]


def key(model, tokens, start, end, request_id, worker=0, world=1, salt=""):
    """An IPCCacheServerKey: the whole prefix and the range of it that is meant.

    worker None means every rank, as a look-up of the scheduler has it.
    """
    return {
        "model_name": model,
        "world_size": world,
        "worker_id": worker,
        "token_ids": list(tokens),
        "start": start,
        "end": end,
        "request_id": request_id,
        "cache_salt": salt,
    }


def group(number, layers, tokens_per_block, window=-1):
    """An EngineGroupInfo: layers that share one block table."""
    return {
        "engine_group_id": number,
        "layer_indices": list(layers),
        "tokens_per_block": tokens_per_block,
        "sw_size_tokens": window,
    }


def exports(pickles):
    """A KVCache: a list of pickled wrappers, one for each tensor, in the order of the layers."""
    return [msgpack.ExtType(EXT_WRAPPER, p) for p in pickles]


def engine_driven(instance, model, block_size, layers, hidden, dtype, world=1, mla=False):
    """A RegisterEngineDrivenContextPayload: one map."""
    return {
        "instance_id": instance,
        "model_name": model,
        "world_size": world,
        "block_size": block_size,
        "num_layers": layers,
        "hidden_dim_size": hidden,
        "dtype_str": dtype,
        "use_mla": mla,
    }
