"""The frames of wire.py and wrapper.py against captured bytes of real workers.

Run: /usr/bin/python3 -m unittest -v test_wire   (in this folder)
"""

import unittest

import wire
import wrapper


def h(text):
    return bytes.fromhex(text.replace(" ", ""))


ID = 0x1234567890ABCDEF

GROUP = h(
    "91 84 af 65 6e 67 69 6e 65 5f 67 72 6f 75 70 5f 69 64 00 ad 6c 61 79 65 72 5f 69 6e 64 69 63 65 73 92 00 01"
    "b0 74 6f 6b 65 6e 73 5f 70 65 72 5f 62 6c 6f 63 6b 10 ae 73 77 5f 73 69 7a 65 5f 74 6f 6b 65 6e 73 ff")

KEY = (h("88") + h("aa") + b"model_name" + h("a1 6d aa") + b"world_size" + h("01 a9") + b"worker_id" + h("00 a9")
       + b"token_ids" + h("92 01 02 a5") + b"start" + h("00 a3") + b"end" + h("02 aa") + b"request_id"
       + h("a1 72 aa") + b"cache_salt" + h("a0"))


class Requests(unittest.TestCase):
    def test_ping(self):
        self.assertEqual(wire.request(0, wire.PING, ID), [h("00"), h("16"), h("cf 12 34 56 78 90 ab cd ef")])
        self.assertEqual(wire.request(0, wire.PING, None)[2], h("c0"))
        self.assertEqual(wire.request(0, wire.PING, 42)[2], h("2a"))
        self.assertEqual(wire.request(0, wire.PING, 2**63 - 1)[2], h("cf 7f ff ff ff ff ff ff ff"))
        self.assertEqual(wire.request(0, wire.PING), [h("00"), h("16")], "a worker of before liveness")

    def test_uids_are_as_short_as_can_be(self):
        for uid, frame in ((0, "00"), (127, "7f"), (128, "cc 80"), (65536, "ce 00 01 00 00")):
            self.assertEqual(wire.request(uid, wire.NOOP)[0], h(frame))

    def test_register_without_memory(self):
        frames = wire.request(
            1, wire.REGISTER_KV_CACHE, ID, wire.exports([]), "Qwen/Qwen3-8B", 1, "vllm",
            {"kv_layout": "NHD"}, [wire.group(0, [0, 1], 16)])
        self.assertEqual(frames, [
            h("01"), h("01"), h("cf 12 34 56 78 90 ab cd ef"), h("90"),
            h("ad 51 77 65 6e 2f 51 77 65 6e 33 2d 38 42"), h("01"), h("a4 76 6c 6c 6d"),
            h("81 a9 6b 76 5f 6c 61 79 6f 75 74 a3 4e 48 44"), GROUP])

    def test_minimal_key(self):
        self.assertEqual(wire.pack(wire.key("m", [1, 2], 0, 2, "r")), KEY)

    def test_the_others(self):
        self.assertEqual(wire.request(0, wire.GET_CHUNK_SIZE), [h("00"), h("15")])
        self.assertEqual(wire.request(0, wire.GET_EXPERIMENTAL), [h("00"), h("28")])
        self.assertEqual(wire.request(0, wire.GET_EXPERIMENTAL_OTHER), [h("00"), h("20")])
        self.assertEqual(wire.request(0, wire.NOOP), [h("00"), h("18")])
        self.assertEqual(wire.request(0, wire.WAIT_PREFETCH_STATUS, "r", 1.5)[3], h("cb 3f f8 00 00 00 00 00 00"))

    def test_a_key_with_every_rank(self):
        self.assertIn(b"worker_id\xc0", wire.pack(wire.key("m", [], 0, 0, "r", worker=None)))


class Wrappers(unittest.TestCase):
    def test_the_real_pickle(self):
        body = wrapper.pickled("/lmcache_kv_1_0", 32768, "float16", (2, 4, 16, 2, 64))
        self.assertEqual(body, h(
            "800495e2000000000000008c1b6c6d63616368652e76312e706c6174666f726d2e6370752e73686d948c134370755368"
            "6d54656e736f72577261707065729493942981947d94288c0873686d5f6e616d65948c0f2f6c6d63616368655f6b765f"
            "315f30948c066e6279746573944d00808c0668616e646c65944e8c056474797065948c05746f726368948c07666c6f61"
            "7431369493948c05736861706594284b024b044b104b024b4074948c0673747269646594284d00204d00084b804b404b"
            "0174948c0e73746f726167655f6f6666736574944b008c0b6465766963655f75756964948c036370759475622e"))

    def test_as_a_payload(self):
        # The captured frame: a segment of 64 KiB behind a tensor of half of it.
        body = wrapper.pickled("/lmcache_kv_1_0", 65536, "float16", (2, 4, 16, 2, 64))
        frame = wire.pack(wire.exports([body]))
        self.assertEqual(len(body), 239)
        self.assertTrue(frame.startswith(
            h("91 c7 ef 01 80 04 95 e4 00 00 00 00 00 00 00 8c 1b") + b"lmcache.v1.platform.cpu.shm"
            + h("94 8c 13") + b"CpuShmTensorWrapper" + h("94 93 94 29 81 94 7d 94 28")))
        self.assertTrue(frame.endswith(h("75 62 2e")))
        self.assertEqual(frame[4:], body)

    def test_a_long_name_takes_the_longer_head(self):
        body = wrapper.pickled("/lmcache_kv_%d_%d" % (4194304, 10**12), 65536, "float16", (2, 4, 16, 2, 64))
        self.assertGreater(len(body), 255)
        self.assertTrue(wire.pack(wire.exports([body])).startswith(h("91 c8 %04x 01" % len(body))))


class Replies(unittest.TestCase):
    def reply(self, *frames):
        return wire.Reply([h(f) for f in frames])

    def test_results(self):
        self.assertIs(self.reply("00", "16", "c3").result, True)
        self.assertIsNone(self.reply("01", "01").result)
        self.assertEqual(self.reply("00", "15", "cd 01 00").result, 256)
        self.assertEqual(self.reply("00", "18", "a2 4f 4b").result, "OK")
        self.assertEqual(self.reply("00", "28", "90").result, [])
        self.assertEqual(self.reply("00", "06", "92 c4 02 01 02 c3").result, [b"\x01\x02", True])
        self.assertEqual(
            self.reply("00", "0e", "82 a8 73 68 6d 5f 6e 61 6d 65 a0 a9 70 6f 6f 6c 5f 73 69 7a 65 00").result,
            {"shm_name": "", "pool_size": 0})
        self.assertEqual(
            self.reply("00", "12", "83 a7 73 75 63 63 65 73 73 c2 a4 64 61 74 61 c4 00 a7 63 6f 6e 74 65 78 74 80").result,
            {"success": False, "data": b"", "context": {}})

    def test_a_refusal_says_why(self):
        r = wire.Reply([h("05"), h("06"), h("92 c4 00 c2"), wire.pack("vigil.refused:not-registered")])
        self.assertEqual((r.result, r.refused), ([b"", False], "not-registered"))

    def test_a_ping_may_say_more_than_yes(self):
        for frame in ("c3", "03", "07", "09"):
            self.assertTrue(bool(self.reply("00", "16", frame).result))

    def test_too_short(self):
        with self.assertRaises(ValueError):
            wire.Reply([h("00")])


if __name__ == "__main__":
    unittest.main()
