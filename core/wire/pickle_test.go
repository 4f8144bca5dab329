package wire

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"vigil/core"
)

// Pickles that CPython 3.11 wrote of objects with the attributes of the real
// wrapper classes.
const (
	pickledRaw  = "8004956c010000000000008c246c6d63616368652e76312e706c6174666f726d2e637564612e6970635f77726170706572948c1152617743756461495043577261707065729493942981947d94288c145f6970635f68616e646c655f7265736572766564944340000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f948c0d5f616c6c6f635f6f6666736574944a000020008c075f6e6279746573944a0000f4018c0668616e646c65944e8c056474797065948c05746f726368948c0862666c6f617431369493948c05736861706594284de8034b104b084b8074948c0673747269646594284d00404d00044b804b0174948c0e73746f726167655f6f6666736574944b008c065f6f70656e73944b008c0b6465766963655f75756964948c284750552d31313131313131312d323232322d333333332d343434342d3535353535353535353535359475622e"
	pickledCUDA = "8004959d010000000000008c246c6d63616368652e76312e706c6174666f726d2e637564612e6970635f77726170706572948c0e43756461495043577261707065729493942981947d94288c0668616e646c6594284b0043420163000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f948a050010e093044d00104316746f7263685f315f325f335f726566636f756e746572944b07434000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000948874948c056474797065948c05746f726368948c0862666c6f617431369493948c05736861706594284b024ae09304004b104b084b8074948c0673747269646594288a050000f824014d00404d00044b804b0174948c0e73746f726167655f6f6666736574944b008c0b6465766963655f75756964948c284750552d31313131313131312d323232322d333333332d343434342d3535353535353535353535359475622e"
	pickledShm  = "800495e2000000000000008c1b6c6d63616368652e76312e706c6174666f726d2e6370752e73686d948c1343707553686d54656e736f72577261707065729493942981947d94288c0873686d5f6e616d65948c0f2f6c6d63616368655f6b765f315f30948c066e6279746573944d00808c0668616e646c65944e8c056474797065948c05746f726368948c07666c6f617431369493948c05736861706594284b024b044b104b024b4074948c0673747269646594284d00204d00084b804b404b0174948c0e73746f726167655f6f6666736574944b008c0b6465766963655f75756964948c036370759475622e"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func unpickle(body []byte) (core.Export, cursor) {
	var e core.Export
	var shapes []int64
	c := cursor{b: body}
	c.pickled(&e, &shapes)
	return e, c
}

func TestSharedMemoryWrapperIsRead(t *testing.T) {
	e, c := unpickle(unhex(t, pickledShm))
	if c.fail != core.NoFailure {
		t.Fatal(c.why)
	}
	want := core.Export{
		Kind: core.HostSHM, Handle: []byte("/lmcache_kv_1_0"), Device: []byte("cpu"), Bytes: 32768,
		Blocks: 4, BlockBytes: 2 * 16 * 2 * 64 * 2, DType: []byte("float16"), Shape: []int64{2, 4, 16, 2, 64},
	}
	if !e.Equal(&want) {
		t.Errorf("got %+v, want %+v", e, want)
	}
}

func TestCUDAWrappersAreRead(t *testing.T) {
	handle := make([]byte, 64)
	for i := range handle {
		handle[i] = byte(i)
	}
	device := []byte("GPU-11111111-2222-3333-4444-555555555555")
	raw := core.Export{
		Kind: core.CUDA, Handle: handle, Device: device, Offset: 2097152, Bytes: 1000 * 16 * 8 * 128 * 2,
		Blocks: 1000, BlockBytes: 16 * 8 * 128 * 2, DType: []byte("bfloat16"), Shape: []int64{1000, 16, 8, 128},
	}
	shared := core.Export{
		Kind: core.CUDA, Handle: handle, Device: device, Offset: 4096, Bytes: 2 * 300000 * 16 * 8 * 128 * 2,
		Blocks: 300000, BlockBytes: 2 * 16 * 8 * 128 * 2, DType: []byte("bfloat16"), Shape: []int64{2, 300000, 16, 8, 128},
	}
	for body, want := range map[string]core.Export{pickledRaw: raw, pickledCUDA: shared} {
		e, c := unpickle(unhex(t, body))
		if c.fail != core.NoFailure {
			t.Errorf("refused: it %s", c.why)
		} else if !e.Equal(&want) {
			t.Errorf("got %+v, want %+v", e, want)
		}
	}
}

// What PROTOCOL, section 8 gives of its wrapper's 239 bytes: the front, the
// end, the length. The segment is larger than the tensor there, as two bytes
// more than the tensor's own size say.
func TestOurSharedMemoryWrapperIsPythons(t *testing.T) {
	e := core.Export{
		Kind: core.HostSHM, Handle: []byte("/lmcache_kv_1_0"), Bytes: 32768,
		DType: []byte("float16"), Shape: []int64{2, 4, 16, 2, 64},
	}
	if got, want := appendPickledShm(nil, &e), unhex(t, pickledShm); !bytes.Equal(got, want) {
		t.Errorf("got  % x\nwant % x", got, want)
	}
	e.Bytes = 65536
	frame := AppendPickledExports(nil, []core.Export{e})
	front := unhex(t, "91 c7 ef 01 80 04 95 e4 00 00 00 00 00 00 00 8c 1b"+hex.EncodeToString([]byte("lmcache.v1.platform.cpu.shm"))+
		"94 8c 13"+hex.EncodeToString([]byte("CpuShmTensorWrapper"))+"94 93 94 29 81 94 7d 94 28")
	if !bytes.HasPrefix(frame, front) {
		t.Errorf("begins % x, want % x", frame[:len(front)], front)
	}
	if !bytes.HasSuffix(frame, unhex(t, "75 62 2e")) || len(frame) != 4+239 {
		t.Errorf("has %d bytes and ends % x", len(frame), frame[len(frame)-3:])
	}
	c := cursor{b: frame}
	c.array(1)
	if _, body := c.extension(); len(body) != 239 {
		t.Errorf("the body has %d bytes, want 239", len(body))
	} else if got, in := unpickle(body); in.fail != core.NoFailure || got.Bytes != 32768 {
		t.Errorf("read back %+v (%s)", got, in.why)
	}
}

// Nothing but the three shapes is read, whatever Python would make of it.
func TestOtherPicklesAreRefused(t *testing.T) {
	whole := unhex(t, pickledShm)
	replace := func(old, with string) []byte {
		out := bytes.Replace(whole, []byte(old), []byte(with), 1)
		if bytes.Equal(out, whole) {
			t.Fatalf("%q is not in the pickle", old)
		}
		return out
	}
	cases := []struct {
		name string
		body []byte
		fail core.Failure
	}{
		{"nothing", nil, core.FailUndecodable},
		{"a call of os.system", []byte("\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R."), core.FailUndecodable},
		{"the same by the old opcode", []byte("cposix\nsystem\n(S'id'\ntR."), core.FailUndecodable},
		{"a reduce of a wrapper's class", append(bytes.Clone(whole[:63]), []byte("\x93)R.")...), core.FailUndecodable},
		{"another class", replace("CpuShmTensorWrapper", "CpuShmTensorWrappeR"), core.FailUndecodable},
		{"a function of torch", replace("\x07float16", "\x07compile"), core.FailUndecodable},
		{"a name with a path", replace("/lmcache_kv_1_0", "/../../etc/pass"), core.FailUndecodable},
		{"a segment smaller than the tensor", replace("nbytes\x94M\x00\x80", "nbytes\x94M\x00\x40"), core.FailUndecodable},
		{"a negative size", replace("nbytes\x94M\x00\x80", "nbytes\x94\x8a\x01\x80"), core.FailUndecodable},
		{"an offset past the segment", replace("storage_offset\x94K\x00", "storage_offset\x94K\x01"), core.FailUndecodable},
		{"strides that overlap", replace("M\x00\x20M\x00\x08K\x80K\x40K\x01", "M\x00\x20M\x00\x08K\x01K\x01K\x01"), core.FailUndecodable},
		{"blocks that are interleaved", replace("M\x00\x20M\x00\x08K\x80", "M\x00\x08M\x00\x10K\x80"), core.FailUndecodable},
		{"a missing attribute", replace("device_uuid", "device_uuit"), core.FailUndecodable},
		{"bytes after the end", append(bytes.Clone(whole), 0), core.FailUndecodable},
		{"no end", whole[:len(whole)-1], core.FailUndecodable},
		{"an unknown memo", []byte{0x80, 4, 'h', 9, '.'}, core.FailUndecodable},
		{"an old protocol", append([]byte{0x80, 2}, whole[2:]...), core.FailUndecodable},
		{"a class and no object", append(bytes.Clone(whole[:64]), '.'), core.FailUndecodable},
		{"an object without state", append(bytes.Clone(whole[:68]), '.'), core.FailUndecodable},
		{"a stack without end", bytes.Repeat([]byte{'N'}, 1000), core.FailTooLarge},
		{"a memo without end", append([]byte{'N'}, bytes.Repeat([]byte{0x94}, 1000)...), core.FailTooLarge},
		{"tuples without end", bytes.Repeat([]byte{'N', 0x85, '('}, 60), core.FailTooLarge},
		{"a tuple over a mark", []byte{'N', '(', 0x85, '.'}, core.FailUndecodable},
		{"a body without end", make([]byte, MaxPickle+1), core.FailTooLarge},
		{"a declared gigabyte", []byte{0x80, 4, 'B', 0, 0, 0, 0x40, '.'}, core.FailUndecodable},
		{"a frame past the end", []byte{0x80, 4, 0x95, 0xff, 0, 0, 0, 0, 0, 0, 0, '.'}, core.FailUndecodable},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, in := unpickle(c.body); in.fail != c.fail || in.why == "" {
				t.Errorf("got %v (%s), want %v", in.fail, in.why, c.fail)
			}
		})
	}
	// Every cut of a whole one is refused, too.
	for i := range whole {
		if _, in := unpickle(whole[:i]); in.fail == core.NoFailure {
			t.Errorf("a pickle cut at %d was taken for whole", i)
		}
	}
}
