// Package secure connects paired devices: mutually authenticated TLS 1.3 in
// which each side knows the other by its key alone, and nothing by a name or an
// authority.
//
// An [Identity] is a device's own key. [Devices] is the list of those that a
// [Listener] lets in. A [Dialer] expects one key at the other end and fails with
// a [KeyError] when another answers. [Pairings] and [Pair] make two devices
// known to one another by a short code that a person carries from one to the
// other. Where a network passes only HTTPS, the same connection travels inside a
// WebSocket: whatever ends the outer TLS sees ciphertext.
package secure
