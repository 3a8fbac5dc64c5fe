// Package tunnel makes connections carry many streams. It knows nothing of
// sessions or devices and runs over anything that is a [net.Conn].
//
// A [Tunnel] leads to another machine. [Dial] makes one over the carriers of a
// [Dialer], a [Host] on the other side takes them in, and either side opens
// streams of a [Class]: bulk is paced by the delay that it causes, on a carrier
// of its own where one can be had, so that a key stroke passes it. SPEC.md
// beside this file is the protocol. A Line keeps a tunnel up.
//
// A [Mux] leads into a container, over a unix socket: one side is the [Opener],
// the other the [Accepter], and only the first may open streams.
//
// Both multiplex with smux. A Mux is a session of it as it is; beneath and beside
// the sessions of a Tunnel, one for each carrier, the tunnel decides what is sent
// next and checks what arrives.
//
// In both each stream has its own window, so that one whose reader has stopped
// fills its own buffer and never holds up the others. A heartbeat finds a peer
// that has fallen silent, and every write to a connection has a deadline.
// Streams are cheap and mortal: whatever must survive the loss of the
// connection carries an offset of its own and resumes on a new one.
package tunnel
