// Package layers carries images between agents: the stream in which their parts travel ([Writer], [Reader]), the place
// where what has arrived waits for the rest ([Depot]), and whoever brings one to the other over connections that break
// ([Carry]).
//
// # The stream
//
// A frame is one byte that says what it is, a big-endian uint32 length, and the payload.
//
//	'P' part   JSON of a session.PartMark: which part follows, from which offset.
//	           At most 4 KiB
//	'C' chunk  a big-endian uint32 with the length of the content, at most 1 MiB,
//	           then the content as one Zstandard frame (RFC 8878)
//	'E' end    of the part; nothing
//	'Z' end    of the stream; nothing
//
// Content is always what the part's digest is made of: a layer's uncompressed archive. The receiver answers with JSON
// lines of session.PartMark for what it has written to disk for good; one with "whole" says that all of the part is
// there and was checked against its digest. A line with a "failure" is the last.
//
// A stream that ends without 'Z' was cut. Offsets count content, so a stream may go on from any mark, whatever the
// sender's compression.
package layers
