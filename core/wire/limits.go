package wire

import "time"

// Why this file: what a stranger sends must not decide how much memory or time
// its decoding takes. Every bound has a name here and passing one is
// core.FailTooLarge; nothing is allocated for a length that a message merely
// declares before so many bytes are known to be present.
const (
	MaxFrames       = 16       // parts of one request, uid and type included
	MaxMessageBytes = 16 << 20 // of one request without inline data
	MaxInlineBytes  = 64 << 20 // of one COMMIT_STORE, whose data travel inline
	MaxReplyBytes   = 64 << 20 // of one reply; PREPARE_RETRIEVE may carry data
	MaxUIDBytes     = 9        // the longest msgpack integer
	MaxTypeBytes    = 66       // an operation's name and its header
	MaxNameBytes    = 64       // of a named operation
	MaxTokens       = 1 << 20  // token ids in one key
	MaxBlocks       = 1 << 20  // block ids in one request, all groups together
	MaxLayers       = 1 << 14  // layers in one registration, all groups together
	MaxDimensions   = 16       // of one exported tensor
	MaxText         = 1024     // bytes of a model name or a request id
	MaxWord         = 64       // bytes of a dtype, a layout or an engine name
	MaxSalt         = 128      // characters of a cache salt (PROTOCOL, section 1.4)
	MaxHandle       = 255      // bytes of a segment name or an IPC handle
	MaxEvent        = 1024     // bytes of a device event; CUDA's has 64
	MaxFields       = 256      // keys in one map, known or not
	MaxDepth        = 16       // nesting of values that are skipped
	MaxRecords      = 1 << 16  // records in one REPORT_BLOCK_ALLOCATION
	MaxSlotsInReply = 1 << 16  // pool slots in one reply
	MaxSettled      = 1 << 10  // uids in the answer to a vigil.settle: one a lane at most
	MaxPickle       = 4096     // bytes of one pickled wrapper; a CUDA one has about 700

	// MaxTimeout is the longest wait that a request can ask for; longer ones,
	// infinity included, mean this.
	MaxTimeout = 365 * 24 * time.Hour
)
