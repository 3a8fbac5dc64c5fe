// Package layers transfers images between agents: the stream of their parts ([Writer], [Reader]), the storage of
// incomplete images ([Depot]), and the transfer over connections that may break ([Carry]).
//
// # The stream
//
// A frame is one byte for its kind, a big-endian uint32 length, and the payload.
//
//	'P' part   JSON of a session.PartMark: which part follows, from which offset. At most 4 KiB
//	'C' chunk  a big-endian uint32 with the length of the content, at most 1 MiB,
//	           then the content as one Zstandard frame (RFC 8878)
//	'E' end    of the part, without payload
//	'Z' end    of the stream, without payload
//
// Content is what the part's digest is computed of: a layer's uncompressed archive. The receiver answers with JSON
// lines of session.PartMark for what it has synced to disk. "whole" means that the part is complete and has its digest.
// A line with a "failure" is the last. A stream that ends without 'Z' was cut. Offsets count content, so a stream may
// continue from any mark, whatever the sender's compression.
package layers
