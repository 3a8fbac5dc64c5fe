// Package resume has streams that survive the loss of the tunnel that they run over. [Open] opens one through a line,
// and a [Host] takes it in on the other side; whoever reads and writes it at either end does not see that its tunnel
// was cut and replaced by another.
//
// # The protocol
//
// A stream runs over a stream of a tunnel, and over another one after each cut. What it carries are frames (see package
// frame):
//
//	'R' resume  the first frame in both directions: id (16 bytes), how much has
//	            come, how much may come beyond what was taken (the window), age of
//	            the stream and patience of the caller in nanoseconds (uint64 each),
//	            and one byte: 1 where the caller has had an answer before. Of the
//	            answer only the first two numbers count
//	'X' refuse  one byte: the stream is not known any more (1), or there are too
//	            many (2). It answers R, and the caller's stream ends
//	'D' data    at most 32 KiB
//	'E' end     the sender writes no more
//	'C' close   the sender neither writes nor reads any more
//	'T' taken   uint64: how much of the other side's data was taken
//
// E and C each count as one byte behind the data. Each side keeps what it has sent until the other has taken it, and
// sends no more than the other's window beyond that. After a cut it begins again behind what has come. A new stream
// does not wait for the answer to its R: 256 KiB may be sent before.
//
// # Ends
//
// The caller ends the stream of the tunnel, once the host has taken its C or has sent a C of its own. Then the host
// forgets the stream. Until then it keeps one that runs over nothing for as long as the caller is patient, an hour at
// most, 64 streams of one peer and 256 in all.
//
// A host refuses to go on with a stream that it does not know where the caller has had an answer, or where the stream
// is so old that the host may have forgotten it. So what a stream asks for is never done twice. The caller is told
// [ErrForgotten], and may ask again on a new stream if that does no harm.
package resume
