// Package resume has streams that survive the loss of their tunnel. [Open] opens one through a line, and a [Host]
// accepts it on the other side. The users at both ends do not see that its tunnel was cut and replaced by another.
//
// # The protocol
//
// A stream runs over a stream of a tunnel, its wire, and over another one after each cut. It carries frames (see
// package frame):
//
//	'R' resume  the first frame in both directions: id (16 bytes), bytes received,
//	            bytes allowed beyond those taken (the window), age of the stream
//	            and patience of the caller in nanoseconds (uint64 each), and one
//	            byte: 1 if the caller has had an answer before. Of the answer only
//	            the first two numbers count
//	'X' refuse  one byte: the stream is no longer known (1), or there are too many
//	            (2). It answers R and ends the caller's stream
//	'D' data    at most 32 KiB
//	'E' end     the sender writes no more
//	'C' close   the sender neither writes nor reads any more
//	'T' taken   uint64: bytes of the other side's data that were taken
//
// E and C each count as one byte after the data. Each side keeps what it has sent until the other has taken it, and
// sends at most the other's window beyond that. After a cut it continues after what has come. A new stream may send 256
// KiB before the answer to its R.
//
// # Ends
//
// The caller ends the wire once the host has taken its C or has sent a C of its own. Then the host forgets the stream.
// Until then it keeps a stream without a wire for the caller's patience, at most an hour, 64 streams of one peer and
// 256 in all.
//
// A host refuses an unknown stream if the caller has had an answer, or if the stream is so old that the host may have
// forgotten it, so that the request of a stream is never executed twice. The caller gets [ErrForgotten], and may repeat
// the request on a new stream if that is harmless.
package resume
