package wire

import (
	"encoding/binary"
	"math/bits"

	"vigil/core"
)

// Why this file: what the attributes of a pickled wrapper mean as an export,
// and the one wrapper that we write ourselves, so that a test or an example
// can speak like a real client.

// dtypeBytes is the size of one element, 0 for an unknown type.
func dtypeBytes(name []byte) uint64 {
	switch string(name) {
	case "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "int8", "uint8", "bool":
		return 1
	case "float16", "bfloat16", "int16", "uint16":
		return 2
	case "float32", "int32", "uint32":
		return 4
	case "float64", "int64", "uint64":
		return 8
	}
	return 0
}

// attr returns an attribute, the last of that name, which must be of kind.
func (u *unpickler) attr(name string, kind pickleKind) pickleValue {
	for i := u.attrs - 1; i >= 0; i-- {
		if string(u.items[i].name) == name {
			if u.items[i].value.kind == kind {
				return u.items[i].value
			}
			break
		}
	}
	u.c.bad("is a pickled export that lacks an attribute or has it of another class")
	return pickleValue{}
}

func (u *unpickler) has(name string) bool {
	for i := range u.attrs {
		if string(u.items[i].name) == name {
			return true
		}
	}
	return false
}

// natural is an integer attribute that is not negative.
func (u *unpickler) natural(v pickleValue) uint64 {
	if v.kind != pickleInt || v.number < 0 {
		u.c.bad("is a pickled export with a negative or missing number")
		return 0
	}
	return uint64(v.number)
}

// export turns the attributes of a wrapper into e.
func (u *unpickler) export(class wrapperClass, e *core.Export, shapes *[]int64) {
	size := u.tensor(e, shapes)
	start := u.times(u.natural(u.attr("storage_offset", pickleInt)), size)
	var room uint64 // bytes of the storage or allocation, from its start on
	switch class {
	case cpuShmWrapper:
		e.Kind = core.HostSHM
		e.Handle = u.attr("shm_name", pickleText).text
		if len(e.Handle) > MaxHandle || !segmentName(e.Handle) {
			u.c.bad("is a pickled export whose segment name is empty, too long or has / or NUL within")
		}
		e.Offset = start
		room = u.natural(u.attr("nbytes", pickleInt))
	case rawCudaWrapper:
		e.Kind = core.CUDA
		e.Handle = u.attr("_ipc_handle_reserved", pickleBytes).text
		room = u.natural(u.attr("_nbytes", pickleInt))
		if u.has("_alloc_offset") {
			// Counted from the allocation, where storage_offset is counted from
			// nowhere and written as 0.
			if start != 0 {
				u.c.bad("is a pickled export with two offsets")
			}
			start = u.natural(u.attr("_alloc_offset", pickleInt))
			room = u.plus(room, start)
		}
		e.Offset = start
	case cudaWrapper:
		e.Kind = core.CUDA
		shared := u.attr("handle", pickleTuple)
		if shared.count != 8 {
			u.c.bad("is a pickled export whose handle has not eight parts")
			return
		}
		parts := u.elements[shared.first : shared.first+shared.count]
		if parts[1].kind != pickleBytes {
			u.c.bad("is a pickled export without an IPC handle")
		}
		e.Handle = parts[1].text
		// Newer clients put a version and the kind of allocation in front; c is
		// one that cudaMalloc made.
		if len(e.Handle) == cudaHandle+2 && e.Handle[1] == 'c' {
			e.Handle = e.Handle[2:]
		}
		base := u.natural(parts[3])
		e.Offset = u.plus(base, start)
		room = u.plus(base, u.natural(parts[2]))
	}
	if e.Kind == core.CUDA && len(e.Handle) != cudaHandle {
		u.c.bad("is a pickled export whose IPC handle has not 64 bytes")
	}
	e.Device = u.attr("device_uuid", pickleText).text
	if len(e.Device) > MaxWord {
		u.c.large("is a pickled export whose device name is too long")
	}
	if end := u.plus(e.Offset, e.Bytes); end > room {
		u.c.bad("is a pickled export that ends behind its memory")
	}
}

// cudaHandle is the length of a CUDA IPC handle.
const cudaHandle = 64

// tensor reads element type, shape and strides; it returns the size of one
// element. Blocks must lie one after the other, since they are copied as
// byte ranges; within a block the order of dimensions is the client's affair.
func (u *unpickler) tensor(e *core.Export, shapes *[]int64) uint64 {
	e.DType = u.attr("dtype", pickleDType).text
	size := dtypeBytes(e.DType)
	shape, stride := u.attr("shape", pickleTuple), u.attr("stride", pickleTuple)
	if shape.count == 0 || shape.count > MaxDimensions || stride.count != shape.count {
		u.c.bad("is a pickled export whose shape and strides do not fit")
		return size
	}
	dims := u.elements[shape.first : shape.first+shape.count]
	strides := u.elements[stride.first : stride.first+stride.count]
	blockDim := 0
	if dims[0].number == 2 && len(dims) > 2 {
		blockDim = 1 // keys and values first, each with all blocks
	}
	count := uint64(1)  // elements of the dimensions from i on
	reach := uint64(0)  // the last element's distance from the first
	within := uint64(1) // elements of one block and kind
	for i := len(dims) - 1; i >= 0; i-- {
		n, step := u.natural(dims[i]), u.natural(strides[i])
		if n == 0 {
			u.c.bad("is a pickled export without elements")
			return size
		}
		if i <= blockDim && n > 1 && step != count {
			u.c.bad("is a pickled export whose blocks do not lie one after the other")
		}
		reach = u.plus(reach, u.times(n-1, step))
		if i == blockDim {
			within = count
		}
		count = u.times(count, n)
	}
	if reach != count-1 {
		u.c.bad("is a pickled export whose elements do not lie side by side")
	}
	if u.c.fail != core.NoFailure {
		return size
	}
	at := len(*shapes)
	for i := range dims {
		*shapes = append(*shapes, dims[i].number)
	}
	e.Shape = (*shapes)[at:len(*shapes):len(*shapes)]
	e.Bytes = u.times(count, size)
	blocks := uint64(dims[blockDim].number)
	blockBytes := u.times(within, size)
	if blockDim == 1 {
		blockBytes = u.times(blockBytes, 2)
	}
	if blocks > 1<<32-1 || blockBytes > 1<<32-1 {
		u.c.large("is a pickled export with too many or too large blocks")
	}
	e.Blocks, e.BlockBytes = uint32(blocks), uint32(blockBytes)
	return size
}

// times and plus keep sizes within 63 bits.
func (u *unpickler) times(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high != 0 || low > 1<<63-1 {
		u.c.bad("is a pickled export whose size does not fit 63 bits")
		return 0
	}
	return low
}

func (u *unpickler) plus(a, b uint64) uint64 {
	if a+b > 1<<63-1 {
		u.c.bad("is a pickled export whose size does not fit 63 bits")
		return 0
	}
	return a + b
}

// AppendPickledExports writes the payload frame of a registration whose
// exports are host shared memory the way a real client does: a pickled
// CpuShmTensorWrapper each. Shape and DType must be set, and what is exported
// must be a plain C-ordered tensor; others are not expressible so.
func AppendPickledExports(b []byte, exports []core.Export) []byte {
	b = appendArray(b, len(exports))
	for i := range exports {
		body := appendPickledShm(nil, &exports[i])
		b = append(appendExtHead(b, extPickle, len(body)), body...)
	}
	return b
}

func appendPickledShm(b []byte, e *core.Export) []byte {
	at := len(b)
	b = append(b, opProto, 4, opFrame)
	b = binary.LittleEndian.AppendUint64(b, 0) // set at the end
	body := len(b)
	b = pickleText255(b, shmModule)
	b = pickleText255(b, shmClass)
	b = append(b, opStackGlobal, opMemoize, opEmptyTuple, opNewObj, opMemoize, opEmptyDict, opMemoize, opMark)
	b = pickleText255(b, "shm_name")
	b = pickleText255(b, string(e.Handle))
	b = pickleText255(b, "nbytes")
	b = pickleNumber(b, e.Offset+e.Bytes)
	b = append(pickleText255(b, "handle"), opNone)
	b = pickleText255(b, "dtype")
	b = pickleText255(b, dtypeModule)
	b = pickleText255(b, string(e.DType))
	b = append(b, opStackGlobal, opMemoize)
	b = append(pickleText255(b, "shape"), opMark)
	for _, d := range e.Shape {
		b = pickleNumber(b, uint64(d))
	}
	b = append(b, opTuple, opMemoize)
	b = append(pickleText255(b, "stride"), opMark)
	for i := range e.Shape {
		step := uint64(1)
		for _, d := range e.Shape[i+1:] {
			step *= uint64(d)
		}
		b = pickleNumber(b, step)
	}
	b = append(b, opTuple, opMemoize)
	b = pickleText255(b, "storage_offset")
	start := uint64(0)
	if size := dtypeBytes(e.DType); size > 0 {
		start = e.Offset / size
	}
	b = pickleNumber(b, start)
	b = pickleText255(b, "device_uuid")
	b = pickleText255(b, "cpu")
	b = append(b, opSetItems, opBuild, opStop)
	binary.LittleEndian.PutUint64(b[at+3:], uint64(len(b)-body))
	return b
}

// pickleText255 writes a text of at most 255 bytes, remembered as Python does.
func pickleText255(b []byte, s string) []byte {
	if len(s) > 255 {
		s = s[:255]
	}
	b = append(b, opShortBinUnicode, byte(len(s)))
	return append(append(b, s...), opMemoize)
}

func pickleNumber(b []byte, v uint64) []byte {
	switch {
	case v <= 0xff:
		return append(b, opBinInt1, byte(v))
	case v <= 0xffff:
		return binary.LittleEndian.AppendUint16(append(b, opBinInt2), uint16(v))
	case v <= 1<<31-1:
		return binary.LittleEndian.AppendUint32(append(b, opBinInt), uint32(v))
	}
	n := 1 // bytes with room for a sign
	for v>>(8*n-1) != 0 {
		n++
	}
	b = append(b, opLong1, byte(n))
	for range n {
		b = append(b, byte(v))
		v >>= 8
	}
	return b
}
