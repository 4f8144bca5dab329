package wire

import (
	"bytes"

	"vigil/core"
)

// Why this file: the wire has no error form (PROTOCOL, section 1.6), and a
// client that gets no answer waits for its own timeout, or for ever. A refusal
// is therefore an ordinary reply that means no in the form of its request,
// which an old client survives, and one frame behind it that says why, which
// an old client ignores (PROTOCOL, section 1.2: frames past the result).

// refusalMark begins the text of a refusal's last frame; the failure's word
// follows it.
const refusalMark = "vigil.refused:"

// refusalFrame is the part of a reply in which a refusal says why.
const refusalFrame = firstPayload + 1

// longestWord bounds a failure's word; a longer one is none that we know.
const longestWord = 32

// EncodeRefusal appends the frames of a refusal of a request of type t whose
// first two frames were uid and rawType: the result that means no, and why.
//
// A request that we do not serve has no result frame, because no single form
// is read by every dialect as that number's result, and one that cannot be
// read ends an old client's loop; its client resolves it to None. There is
// then no place for the reason either.
func EncodeRefusal(f *core.Frames, uid, rawType []byte, t Type, why core.Failure) {
	f.Append(uid)
	f.Append(rawType)
	b := f.Bytes
	switch entryOf(t).result {
	case resultNone, resultMaybe, resultInts:
		b = append(b, codeNil)
	case resultBool:
		b = append(b, codeFalse)
	case resultStored:
		b = append(b, "\x92\xc4\x00\xc2"...)
	case resultInt:
		b = append(b, 0) // a nil would not be an integer to int()
	case resultText:
		b = append(b, 0xa0)
	case resultList:
		b = append(b, emptyArray...)
	case resultContext:
		b = append(b, "\x82\xa8shm_name\xa0\xa9pool_size\x00"...)
	case resultPrepareStore:
		// Not an empty context: that asks for the data inline. Empty lists say
		// that all is stored, so the client skips its commit.
		b = append(b, "\x81\xa7context\x82\xa5slots\x90\xadchunk_indices\x90"...)
	case resultPrepareRetrieve:
		b = append(b, "\x83\xa7success\xc2\xa4data\xc4\x00\xa7context\x80"...)
	default:
		if t != Named {
			return
		}
		b = append(b, codeNil)
	}
	f.Bytes = b
	f.EndPart()
	word := why.String()
	b = appendTextHead(f.Bytes, len(refusalMark)+len(word))
	b = append(b, refusalMark...)
	f.Bytes = append(b, word...)
	f.EndPart()
}

// refusalIn reads the frame behind a result: why the request was refused, or
// NoFailure where the frame is anything else. A mark with a word that we do
// not know is a refusal by somebody newer.
func refusalIn(frame []byte) core.Failure {
	c := cursor{b: frame}
	s := c.text(MaxText)
	if c.end(); c.fail != core.NoFailure {
		return core.NoFailure
	}
	word, marked := bytes.CutPrefix(s, []byte(refusalMark))
	if !marked {
		return core.NoFailure
	}
	if len(word) <= longestWord {
		if why, known := core.FailureNamed(string(word)); known && why != core.NoFailure {
			return why
		}
	}
	return core.FailUnknownVerdict
}
