// Package realgpu holds what every kind of real memory shares: where the bytes
// of a block lie, what a backend tells of itself, and the trouble that a test
// may make on purpose. The kinds are in the folders below: hostshm is POSIX
// shared memory and needs no device, cuda is device memory.
//
// Layout. Block b of a tensor lies at Offset + b*BlockBytes. A tensor of shape
// [2, Blocks, ...] holds keys and values in two halves: block b is the
// BlockBytes/2 bytes at Offset + b*BlockBytes/2 and as many again at the same
// place of the second half, which begins at Offset + Blocks*BlockBytes/2. In a
// slot of the store a chunk is: for each engine group in order, for each of
// its tensors in registration order, for each block of the chunk, the block's
// bytes (keys, then values). Every backend keeps it, so what a worker stored
// from one kind of memory can be retrieved into another.
package realgpu
