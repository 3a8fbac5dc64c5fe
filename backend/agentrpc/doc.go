// Package agentrpc is [session.Agent] over a tunnel: [Client] and [Handler] are the two ends of every method.
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
// A plain call is Q, then A or F. What is watched is Q, A, then V or K until F. A download is Q, A, D…, then E or F. A
// duplex is Q, A, then D and E both ways. An upload is Q, D…, E, then A or F, which may come before the E. A stream
// that ends without E or F was lost.
//
// # Versions
//
// Every request has the [Version] of the caller. The next version is accepted too, all others fail with
// agent_connect_version, which tells which side to upgrade. Unknown fields are ignored, and an unknown method fails
// with agent_call_unsupported.
//
// # Calls that are cut
//
// If the client's opener is a [resume.Line], the streams of calls that change something, of uploads, of duplexes and of
// downloads that cannot begin at a given byte survive cuts: package resume sends again what was lost, and both sides
// only see a pause. Calls that only read, and other downloads, are repeated instead, which needs no memory. Feeds fail
// at once, so that their callers can show that the agent is not reached.
//
// A stream is lost for good when the connection does not come back in time (15 s for a call, an hour for others), or
// when the agent has restarted and forgotten it. Then the outcome is unknown, agent_call_unavailable. A call whose
// repetition is harmless ([again] in the table of methods) is repeated: Launch has its Key, and others, such as Rename
// and StopApp, ask for a state. A cut does not cancel a call that changes something, 'C' does.
//
// # The table of methods
//
// The methods are the interfaces of package session. From the directive of each, build/rpcgen generates its arguments,
// its line in the table and the client's method (methods.gen.go); methods.md lists them. A method is a plain, feed,
// download, upload or duplex, by its signature. The client resumes a download that has an offset and arguments for the
// rest; after the loss of an upload its caller asks a plain method how much has arrived. Special cases are in
// methods.go, and the checks of answers in gate.go. Every field of an answer needs a rule in package vet, or in gate.go
// if its type is declared here.
//
// # What the client believes
//
// An agent may send anything. The client checks every field ([gate]) before it returns one: ids, names, paths,
// references, numbers and times follow their rules, texts for people are cleaned, and an answer fits its call. Invalid
// data and frames that break the protocol fail with [session.CodeAgentReply], and [ClientConfig].Distrust is called.
package agentrpc
