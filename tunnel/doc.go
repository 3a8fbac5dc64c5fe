// Package tunnel carries many streams over one connection, or two. It knows nothing of sessions or devices and runs
// over any [net.Conn].
//
// A [Tunnel] leads to another machine. [Dial] makes one over the carriers of a [Dialer], a [Host] on the other side
// takes them in, and either side opens streams of a [Class]: bulk is paced by the delay that it causes, on a carrier of
// its own where one can be had, so that a key stroke passes it. SPEC.md beside this file is the protocol. A Line keeps
// a tunnel up.
//
// A [Mux] leads into a container, over a unix socket: one side is the [Opener], the other the [Accepter], and only the
// first may open streams.
//
// Both multiplex with smux. A Mux is a session of it as it is; beneath and beside the sessions of a Tunnel, one for
// each carrier, the tunnel decides what is sent next and checks what arrives: the library bounds neither the bytes of
// one stream, nor the streams that a peer opens, nor what a frame of a single byte costs, and stops reading for all
// streams once all of its memory is used.
//
// The library is pinned to 1.5.34. With 1.5.50 eight bulk streams over loopback carry a tenth less. From 1.5.55 on a
// stream that the peer has closed still takes writes, and from 1.5.58 on closing a session drops what has arrived; both
// share channels between sessions through a pool, which tests in a bubble of package synctest cannot use.
//
// In both each stream has its own window, so that one whose reader has stopped fills its own buffer and never holds up
// the others. A heartbeat finds a peer that has fallen silent, and every write to a connection has a deadline. Streams
// are cheap and end with their connection. Those of package resume, which are made of them, survive its loss.
package tunnel
