// Package wire is the codec of the multiprocess wire: frames and msgpack
// payloads, the request table, and the checks of counts, types and bounds.
//
// Contract. Decoding never panics, never allocates more than its named bounds
// (limits.go) however its input lies, and reuses the buffers of the Request or
// Reply that it decodes into. Byte slices in a decoded value alias the frames
// they came from, or are copies; count on no longer a life than the frames. Encoding writes the shortest
// forms and the map orders of PROTOCOL, section 1, so that an encoded request
// equals the bytes of an upstream client.
package wire
