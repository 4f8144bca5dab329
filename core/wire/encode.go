package wire

import "vigil/core"

// EncodeRequest appends the frames of r to f: UIDNumber, Type, payloads. The
// bytes equal those of an upstream client, but for exports, which are written
// in our own form. A Legacy PING has no payload; OldNumber writes the other
// dialect's number.
func EncodeRequest(f *core.Frames, r *Request) {
	f.Bytes = appendUint(f.Bytes, r.UIDNumber)
	f.EndPart()
	switch {
	case r.Type == Named:
		f.Bytes = appendText(f.Bytes, r.Name)
	case r.Type == Settle:
		f.Bytes = append(appendTextHead(f.Bytes, len(settleName)), settleName...)
	case r.OldNumber:
		f.Bytes = appendUint(f.Bytes, uint64(otherNumber(r.Type)))
	default:
		f.Bytes = appendUint(f.Bytes, uint64(r.Type))
	}
	f.EndPart()
	switch r.Type {
	case Ping:
		if r.Legacy {
			return
		}
		if r.NoInstance {
			f.Bytes = append(f.Bytes, codeNil)
			f.EndPart()
			return
		}
		putID(f, r)
	case RegisterKVCache, RegisterQCache:
		putID(f, r)
		putExports(f, r)
		putText(f, r.Model)
		putInt(f, r.WorldSize)
		putText(f, r.Engine)
		putHints(f, &r.Hints)
		putGroups(f, r.Groups)
	case UnregisterKVCache, UnregisterQCache, UnregisterEngineDriven, UnregisterRope:
		putID(f, r)
	case Store, StoreQ:
		putKey(f, r)
		putID(f, r)
		putBlocks(f, r)
		putData(f, r.Event)
	case Retrieve:
		putKey(f, r)
		putID(f, r)
		putBlocks(f, r)
		putData(f, r.Event)
		putInt(f, r.Skip)
	case Lookup, FreeLookupLocks:
		putKey(f, r)
		putInt(f, r.TPSize)
	case QueryPrefetchStatus, QueryPrefetchLookupHits, EndSession:
		putText(f, r.RequestID)
	case WaitPrefetchStatus:
		putText(f, r.RequestID)
		f.Bytes = appendSeconds(f.Bytes, r.Timeout)
		f.EndPart()
	case RegisterEngineDriven:
		putEngineDriven(f, r)
	case PrepareStore, PrepareRetrieve, CommitRetrieve:
		putKey(f, r)
		putID(f, r)
	case CommitStore:
		putKey(f, r)
		putID(f, r)
		putData(f, r.Data)
	case ReportBlockAllocation:
		putID(f, r)
		putText(f, r.Model)
		putRecords(f, r.Records)
	case Settle:
		putID(f, r)
		f.Bytes = appendUint(f.Bytes, r.Before)
		f.EndPart()
	case RegisterRope:
		putID(f, r)
		putExports(f, r)
		putInt(f, r.HeadSize)
		f.Bytes = appendBool(f.Bytes, r.Neox)
		f.EndPart()
		f.Append(emptyArray)
		f.Append(emptyArray)
	}
}

var emptyArray = []byte{0x90}

func putID(f *core.Frames, r *Request) {
	f.Bytes = appendUint(f.Bytes, uint64(r.Instance))
	f.EndPart()
}

func putInt(f *core.Frames, v int64) {
	f.Bytes = appendInt(f.Bytes, v)
	f.EndPart()
}

func putText(f *core.Frames, s []byte) {
	f.Bytes = appendText(f.Bytes, s)
	f.EndPart()
}

func putData(f *core.Frames, s []byte) {
	f.Bytes = appendData(f.Bytes, s)
	f.EndPart()
}

func putKey(f *core.Frames, r *Request) {
	f.Bytes = r.Key.append(f.Bytes)
	f.EndPart()
}

func putBlocks(f *core.Frames, r *Request) {
	b := appendArray(f.Bytes, len(r.BlockEnds))
	start := 0
	for _, end := range r.BlockEnds {
		b = appendUints(b, r.Blocks[start:end])
		start = end
	}
	f.Bytes = b
	f.EndPart()
}

func putExports(f *core.Frames, r *Request) {
	b := appendArray(f.Bytes, len(r.Exports))
	for i := range r.Exports {
		b = appendExport(b, &r.Exports[i])
	}
	f.Bytes = b
	f.EndPart()
}

// putRecords writes n empty records: how many there are is all that is kept.
func putRecords(f *core.Frames, n int) {
	b := appendArray(f.Bytes, n)
	for range n {
		b = append(b, 0x83)
		b = append(b, "\xa6req_id\xa0"...)
		b = append(b, "\xadnew_block_ids\x90"...)
		b = append(b, "\xadnew_token_ids\x90"...)
	}
	f.Bytes = b
	f.EndPart()
}
