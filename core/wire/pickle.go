package wire

import (
	"encoding/binary"
	"unicode/utf8"

	"vigil/core"
)

// Why this file: the real system's clients send their exported memory as a
// Python pickle, and the real server runs it, which lets whoever connects run
// anything. This reader knows the few opcodes that such a wrapper needs
// (PROTOCOL, section 8), the three wrapper classes and the element types, and
// calls nothing. What it builds fits fixed arrays.

// The opcodes that are read. All others are refused.
const (
	opMark            = '('
	opEmptyTuple      = ')'
	opStop            = '.'
	opBinBytes        = 'B'
	opShortBinBytes   = 'C'
	opBinInt          = 'J'
	opBinInt1         = 'K'
	opBinInt2         = 'M'
	opNone            = 'N'
	opBuild           = 'b'
	opBinGet          = 'h'
	opTuple           = 't'
	opSetItems        = 'u'
	opEmptyDict       = '}'
	opProto           = 0x80
	opNewObj          = 0x81
	opTuple1          = 0x85
	opTuple2          = 0x86
	opTuple3          = 0x87
	opNewTrue         = 0x88
	opNewFalse        = 0x89
	opLong1           = 0x8a
	opShortBinUnicode = 0x8c
	opStackGlobal     = 0x93
	opMemoize         = 0x94
	opFrame           = 0x95
)

// The bounds of one pickle; a wrapper of a real client needs less than half.
const (
	maxPickleStack    = 64
	maxPickleMemo     = 64
	maxPickleElements = 64 // of all tuples
	maxPickleItems    = 32 // attributes
)

type pickleKind uint8

const (
	pickleNone pickleKind = iota
	pickleMark
	pickleBool
	pickleInt
	pickleText
	pickleBytes
	pickleTuple
	pickleDict
	pickleDType
	pickleClass
	pickleObject
)

// pickleValue is one value on the reader's stack.
type pickleValue struct {
	kind   pickleKind
	class  wrapperClass // class, object
	number int64        // bool, int
	text   []byte       // text, bytes, the name of a dtype
	first  int          // tuple: its elements' place in unpickler.elements
	count  int
}

// wrapperClass is one of the classes whose objects are understood.
type wrapperClass uint8

const (
	noWrapper wrapperClass = iota
	cpuShmWrapper
	cudaWrapper
	rawCudaWrapper
)

const (
	shmModule   = "lmcache.v1.platform.cpu.shm"
	shmClass    = "CpuShmTensorWrapper"
	cudaModule  = "lmcache.v1.platform.cuda.ipc_wrapper"
	cudaClass   = "CudaIPCWrapper"
	rawClass    = "RawCudaIPCWrapper"
	dtypeModule = "torch"
)

type pickleItem struct {
	name  []byte
	value pickleValue
}

// unpickler is the reader's state. The class has one attribute dictionary, so
// there is one list of items.
type unpickler struct {
	c        cursor
	stack    [maxPickleStack]pickleValue
	depth    int
	memo     [maxPickleMemo]pickleValue
	memos    int
	elements [maxPickleElements]pickleValue
	used     int // of elements
	items    [maxPickleItems]pickleItem
	attrs    int
	dicts    int
	built    bool
}

// pickled reads one pickled wrapper, the body of an extension, into e.
func (c *cursor) pickled(e *core.Export, shapes *[]int64) {
	if len(c.b) > MaxPickle {
		c.large("is a pickled export over its bound")
		return
	}
	u := unpickler{c: cursor{b: c.b}}
	for u.c.fail == core.NoFailure && u.step() {
	}
	class := noWrapper
	if u.c.end(); u.c.fail == core.NoFailure {
		if u.depth != 1 || u.stack[0].kind != pickleObject || !u.built {
			u.c.bad("is a pickle that is not one exported tensor")
		}
		class = u.stack[0].class
	}
	if u.c.fail == core.NoFailure {
		u.export(class, e, shapes)
	}
	c.b = nil
	if u.c.fail != core.NoFailure {
		c.stop(u.c.fail, u.c.why)
	}
}

const whyShape = "is a pickle that is not shaped like an exported tensor"

func (u *unpickler) push(v pickleValue) {
	if u.depth == len(u.stack) {
		u.c.large("is a pickle over its bound on values")
		return
	}
	u.stack[u.depth] = v
	u.depth++
}

// pop takes the top value; a mark is nobody's value.
func (u *unpickler) pop() pickleValue {
	if u.depth == 0 || u.stack[u.depth-1].kind == pickleMark {
		u.c.bad(whyShape)
		return pickleValue{}
	}
	u.depth--
	return u.stack[u.depth]
}

// sinceMark takes the last mark and returns where what stood on it begins; the
// values stay readable in the stack until the next push.
func (u *unpickler) sinceMark() (first, count int) {
	for i := u.depth - 1; i >= 0; i-- {
		if u.stack[i].kind == pickleMark {
			count = u.depth - i - 1
			u.depth = i
			return i + 1, count
		}
	}
	u.c.bad(whyShape)
	return 0, 0
}

// tuple makes a tuple of count values of the stack from first on and puts it
// in their place.
func (u *unpickler) tuple(first, count int) {
	if u.c.fail != core.NoFailure {
		return
	}
	if u.used+count > len(u.elements) {
		u.c.large("is a pickle over its bound on tuples")
		return
	}
	copy(u.elements[u.used:], u.stack[first:first+count])
	u.push(pickleValue{kind: pickleTuple, first: u.used, count: count})
	u.used += count
}

// top takes the count topmost values as a tuple.
func (u *unpickler) topTuple(count int) {
	for range count {
		u.pop()
	}
	u.tuple(u.depth, count)
}

func (u *unpickler) byte() byte {
	b := u.c.take(1)
	if b == nil {
		return 0
	}
	return b[0]
}

// step carries out one opcode; it reports whether another follows.
func (u *unpickler) step() bool {
	switch op := u.byte(); op {
	case opProto:
		if v := u.byte(); v != 4 && v != 5 {
			u.c.bad("is a pickle of another protocol than 4 or 5")
		}
	case opFrame:
		// A frame only says how much may be read at once.
		if b := u.c.take(8); b != nil && binary.LittleEndian.Uint64(b) > uint64(len(u.c.b)) {
			u.c.bad(truncated)
		}
	case opStop:
		return false
	case opMark:
		u.push(pickleValue{kind: pickleMark})
	case opNone:
		u.push(pickleValue{kind: pickleNone})
	case opNewTrue:
		u.push(pickleValue{kind: pickleBool, number: 1})
	case opNewFalse:
		u.push(pickleValue{kind: pickleBool})
	case opBinInt1:
		u.push(pickleValue{kind: pickleInt, number: int64(u.byte())})
	case opBinInt2:
		if b := u.c.take(2); b != nil {
			u.push(pickleValue{kind: pickleInt, number: int64(binary.LittleEndian.Uint16(b))})
		}
	case opBinInt:
		if b := u.c.take(4); b != nil {
			u.push(pickleValue{kind: pickleInt, number: int64(int32(binary.LittleEndian.Uint32(b)))})
		}
	case opLong1:
		u.long()
	case opShortBinUnicode:
		if s := u.c.take(int(u.byte())); utf8.Valid(s) {
			u.push(pickleValue{kind: pickleText, text: s})
		} else {
			u.c.bad(whyShape)
		}
	case opShortBinBytes:
		u.push(pickleValue{kind: pickleBytes, text: u.c.take(int(u.byte()))})
	case opBinBytes:
		if b := u.c.take(4); b != nil {
			n := binary.LittleEndian.Uint32(b)
			if uint64(n) > uint64(len(u.c.b)) {
				u.c.bad(truncated)
			}
			u.push(pickleValue{kind: pickleBytes, text: u.c.take(int(n))})
		}
	case opEmptyTuple:
		u.tuple(0, 0)
	case opTuple1, opTuple2, opTuple3:
		u.topTuple(int(op-opTuple1) + 1)
	case opTuple:
		u.tuple(u.sinceMark())
	case opEmptyDict:
		if u.dicts++; u.dicts > 1 {
			u.c.bad(whyShape)
		}
		u.push(pickleValue{kind: pickleDict})
	case opSetItems:
		u.setItems()
	case opMemoize:
		u.memoize()
	case opBinGet:
		if i := int(u.byte()); i < u.memos {
			u.push(u.memo[i])
		} else {
			u.c.bad(whyShape)
		}
	case opStackGlobal:
		name, module := u.pop(), u.pop()
		u.global(module, name)
	case opNewObj:
		args, class := u.pop(), u.pop()
		if args.kind != pickleTuple || args.count != 0 || class.kind != pickleClass {
			u.c.bad(whyShape)
		}
		u.push(pickleValue{kind: pickleObject, class: class.class})
	case opBuild:
		state := u.pop()
		if u.built || state.kind != pickleDict || u.depth == 0 || u.stack[u.depth-1].kind != pickleObject {
			u.c.bad(whyShape)
		}
		u.built = true
	default:
		u.c.bad("is a pickle with an opcode that no exported tensor needs")
	}
	return true
}

// long reads a little-endian two's complement of at most 8 bytes.
func (u *unpickler) long() {
	b := u.c.take(int(u.byte()))
	if len(b) > 8 {
		u.c.bad("is a pickle with an integer that does not fit 64 bits")
		return
	}
	var v uint64
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	if shift := 64 - 8*len(b); shift > 0 && shift < 64 {
		v = uint64(int64(v<<shift) >> shift)
	}
	u.push(pickleValue{kind: pickleInt, number: int64(v)})
}

func (u *unpickler) memoize() {
	if u.memos == len(u.memo) {
		u.c.large("is a pickle over its bound on remembered values")
		return
	}
	v := u.pop()
	u.push(v)
	u.memo[u.memos] = v
	u.memos++
}

func (u *unpickler) setItems() {
	first, count := u.sinceMark()
	if u.c.fail != core.NoFailure {
		return
	}
	if count%2 != 0 || u.depth == 0 || u.stack[u.depth-1].kind != pickleDict {
		u.c.bad(whyShape)
		return
	}
	if u.attrs+count/2 > len(u.items) {
		u.c.large("is a pickle over its bound on attributes")
		return
	}
	for i := first; i < first+count; i += 2 {
		if u.stack[i].kind != pickleText {
			u.c.bad(whyShape)
			return
		}
		u.items[u.attrs] = pickleItem{u.stack[i].text, u.stack[i+1]}
		u.attrs++
	}
}

// global stands for a class or an element type. Nothing is looked up: the name
// is one of a closed list or the pickle is refused.
func (u *unpickler) global(module, name pickleValue) {
	if module.kind != pickleText || name.kind != pickleText {
		u.c.bad(whyShape)
		return
	}
	switch string(module.text) {
	case dtypeModule:
		if dtypeBytes(name.text) == 0 {
			u.c.bad("is a pickle that names something of torch that is no element type")
		}
		u.push(pickleValue{kind: pickleDType, text: name.text})
		return
	case shmModule:
		if string(name.text) == shmClass {
			u.push(pickleValue{kind: pickleClass, class: cpuShmWrapper})
			return
		}
	case cudaModule:
		switch string(name.text) {
		case cudaClass:
			u.push(pickleValue{kind: pickleClass, class: cudaWrapper})
			return
		case rawClass:
			u.push(pickleValue{kind: pickleClass, class: rawCudaWrapper})
			return
		}
	}
	u.c.bad("is a pickle that names a class outside the three exported tensors")
}
