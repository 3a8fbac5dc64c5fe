// Package secure connects clients to agents that they are paired with, by mutually
// authenticated TLS 1.3. Each side knows the other by its key alone; names and
// certificate authorities mean nothing.
//
// An [Identity] is a computer's own key. [Clients] is the list of those that a
// [Listener] accepts. A [Dialer] expects one key at the other end and fails with
// a [KeyError] when another answers. [Pairings] and [Pair] exchange keys by a short
// code that a person carries from the agent to the client. Where a network passes
// only HTTPS, the same connection travels inside a WebSocket: whatever ends the
// outer TLS sees ciphertext.
package secure
