// Package agentrpc is [session.Agent] over a tunnel: [Client] and [Handler] side by side, so that both ends of every
// method are seen at once.
//
// # The protocol
//
// One stream is one call. Its class is that of the method: control for questions and changes and for watching,
// interactive for terminals, commands and ports, bulk for logs. Everything is a frame: one byte that says what it is, a
// big-endian uint32 length, the payload. The length's highest bit says that the payload is deflated (RFC 1951), which
// requests and data never are; limits hold for what it inflates to.
//
//	to the handler
//	  'Q' request  JSON: version, method, limit, arguments. The first frame, at
//	               most 4 MiB, within 30 s
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
//
// A plain call is Q, then A or F. What is watched is Q, A, then V or K until F.
// A download is Q, A, D…, then E or F. A duplex is Q, A, then D and E both ways.
// An upload is Q, D…, E, then A or F, which may come before the E.
// A stream that ends without E or F was lost.
//
// # Versions
//
// Every request carries the [Version] of the caller. One version later is tolerated, everything else is refused with
// agent_connect_version, which says who is to be upgraded. Unknown fields are ignored, and a method that the handler
// does not have fails with agent_call_unsupported.
//
// # Calls that are cut
//
// Where the client's opener is a [resume.Line], the streams of calls that change something, of uploads, of duplexes and
// of downloads that cannot be asked for from a byte survive cuts: package resume sends again what was lost, and neither
// side sees more than a pause. Questions and other downloads are asked again instead, which costs no memory. What is
// watched fails at once, so that whoever watches can say that the agent is not reached.
//
// A stream is lost for good when the connection does not come back in time (15 s for a call, an hour for others), or
// when the agent was started again meanwhile and has forgotten it. Then the outcome is unknown, agent_call_unavailable.
// A call of which a second one does no harm ([again] in the table of methods) is made again: Launch has its Key, and
// others, such as Rename and StopApp, ask for a state. A cut does not cancel a call that changes something, 'C' does.
//
// # The table of methods
//
// The methods are the interfaces of package session, each with a directive that
// build/rpcgen makes its arguments, its line in the table and the client's method
// of (methods.gen.go); methods.md lists them. A method is a plain, feed, download,
// upload or duplex, by its signature. A download that says its offset, and how to
// ask for the rest, is resumed by the client; who uploads asks a plain method where
// it is after a loss. What differs is in methods.go, and
// what an answer must be about in gate.go. Every field of an answer needs a rule in
// package vet, or in gate.go where the type is from here.
//
// # What the client believes
//
// Whoever runs an agent decides what it sends. The client checks all of it field by field ([gate]) before anybody gets
// it: ids, names, paths, references, numbers and times keep their rules, texts for people are cleaned, and what an
// answer is about is what was asked for. What fails is refused with [CodeReply], also frames that break the protocol,
// and [ClientConfig].Distrust is told.
package agentrpc
