// Package agentrpc is [session.Agent] over a tunnel: [Client] and [Handler]
// side by side, so that both ends of every method are seen at once.
//
// # The protocol
//
// One stream is one call. Its class is that of the method: control for
// questions and changes and for watching, interactive for terminals, commands
// and ports, bulk for logs. Everything is a frame: one byte that says what it
// is, a big-endian uint32 length, the payload. The length's highest bit says
// that the payload is deflated (RFC 1951), which requests and data never are;
// limits hold for what it inflates to.
//
//	to the handler
//	  'Q' request  JSON: version, method, call id, age, limit, arguments. The first
//	               frame, at most 4 MiB, within 30 s
//	  'D' data     at most 32 KiB of a stream of bytes
//	  'E' end      no more data comes; data may still go the other way
//	  'C' cancel   the caller gave up: the call is cancelled
//	to the caller
//	  'A' answer   JSON, at most 64 MiB. It ends a plain call
//	  'F' failure  JSON of a session.Error. It ends any call
//	  'V' event    JSON, at most 64 MiB: the next of what is watched
//	  'K' alive    nothing happened; due every 15 s while nothing else is sent by
//	               what is watched, and used to find out whether a caller is there
//	  'D', 'E'     as above
//	both ways in a lasting stream
//	  'T' taken    a big-endian uint64: how much of the other's bytes was taken
//
// A plain call is Q, then A or F. What is watched is Q, A, then V or K until F.
// A download is Q, A, D…, then E or F. A duplex is Q, A, then D and E both ways.
// An upload is Q, D…, E, then A or F, which may come before the E.
// A stream that ends without E or F was lost.
//
// # Lasting streams
//
// A connection to a port or to the ssh server of a session lasts: it goes on
// over the next stream when the one that it runs over is lost with its tunnel.
// The request says "lasting", with how many bytes its side has received and how
// many more it takes beyond those that its holder has taken (the window); the
// answer says the same of the other side. Either side keeps what it sends until
// the other says with T that it was taken, sends no more than the other's window
// beyond that, and after a loss sends again from where the other has received.
// The end of a direction counts as one byte behind its last.
//
// The caller asks for a stream to go on with the same method and call id, and
// "begun", so that a handler which does not know the stream any more refuses with
// agent_call_forgotten instead of opening another. The handler keeps a stream that
// runs over nothing for an hour, and 64 of one peer at most. A side that does not
// know of lasting streams leaves the word out, and the stream is a duplex.
//
// # Versions
//
// Every request carries the [Version] of the caller. One version apart is
// tolerated, further is refused with agent_connect_version, which says who is to be
// upgraded. Unknown fields are ignored, and a method that the handler does not
// have fails with agent_call_unsupported.
//
// # Calls that are cut
//
// A call whose stream is lost leaves its outcome unknown:
// agent_<verb>_unavailable. Where the opener of streams can wait for its
// connection ([Waiter]), the client asks once more by itself for a few seconds.
// Every such call has an id, by which the handler recognises a repetition: it
// joins the call while it runs and answers from memory when it has ended.
// A cut does not cancel a call that changes something, 'C' does.
//
// The memory is bounded in size and age and gone with the handler. A repetition
// that may fall outside of it is done again where that is harmless ([again] in
// the table of methods): Launch has its Key, and others, such as Rename and StopApp,
// ask for a state. OpenTerminal and CloseTerminal are refused then, and their
// outcome stays unknown. Commands and attached terminals
// are never repeated: whoever holds them begins anew.
//
// # The table of methods
//
// The methods are the interfaces of package session, each with a directive that
// build/rpcgen makes its arguments, its line in the table and the client's method
// of (methods.gen.go); methods.md lists them. A method is a plain, feed, download,
// upload or duplex, by its signature. A download that says its offset, and how to
// ask for the rest, is resumed by the client; an upload resumes by its arguments,
// after a plain method told where it stands. What differs is in methods.go, and
// what an answer must be about in gate.go. Every field of an answer needs a rule in
// package vet, or in gate.go where the type is from here.
//
// # What the client believes
//
// Whoever runs an agent decides what it sends. The client checks all of it field
// by field ([gate]) before anybody gets it: ids, names, paths, references,
// numbers and times keep their rules, texts for people are cleaned, and what an
// answer is about is what was asked for. What fails is refused with [CodeReply],
// also frames that break the protocol, and [ClientConfig].Distrust is told.
package agentrpc
