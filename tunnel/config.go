package tunnel

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Limits of a [Tunnel]. SPEC.md fixes the first two for every peer.
const (
	MaxFrame    = 32 << 10  // bytes in one data frame
	FirstWindow = 256 << 10 // bytes of a stream that may be sent before the first grant

	largestWindow = 16 << 20 // the most that one stream's window grows to, in bytes
	windowMemory  = 64 << 20 // what all windows grow by together, in bytes
	closeTime     = 3 * time.Second
)

// Config sets up a [Tunnel] or a [Host]. A field that is zero has the default in its comment.
type Config struct {
	MaxStreams int           // that the peer may have open at a time; 2048
	MaxTunnels int           // of a Host at a time; 256
	Heartbeat  time.Duration // how often the peer is asked for a sign of life; 5 s
	Silence    time.Duration // how long the peer may be silent before the tunnel ends; 20 s
	Handshake  time.Duration // how long the handshake of one carrier may take; 10 s
	OneCarrier bool          // keeps bulk on the tunnel's first carrier

	versions versionRange // what this side speaks; for tests
}

func (c Config) withDefaults() Config {
	c.MaxStreams = cmp.Or(c.MaxStreams, 2048)
	c.MaxTunnels = cmp.Or(c.MaxTunnels, 256)
	c.Heartbeat = cmp.Or(c.Heartbeat, 5*time.Second)
	c.Silence = cmp.Or(c.Silence, 20*time.Second)
	c.Handshake = cmp.Or(c.Handshake, 10*time.Second)
	c.versions = cmp.Or(c.versions, versionRange{Min: oldestVersion, Max: Version})
	return c
}

// Version is the newest version of SPEC.md that this package speaks, and oldestVersion the oldest.
const (
	Version       = 1
	oldestVersion = 1
)

// versionRange are the versions that one side speaks, both ends included.
type versionRange struct{ Min, Max uint8 }

// best returns the highest version that both sides speak, 0 if there is none.
func (r versionRange) best(other versionRange) uint8 {
	v := min(r.Max, other.Max)
	if v < r.Min || v < other.Min {
		return 0
	}
	return v
}

// VersionError means that the two sides have no version in common.
type VersionError struct {
	OursMin, OursMax     uint8
	TheirsMin, TheirsMax uint8
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("tunnel: this side speaks versions %d to %d, the peer %d to %d",
		e.OursMin, e.OursMax, e.TheirsMin, e.TheirsMax)
}

// Older reports whether it is the peer that is too old.
func (e *VersionError) Older() bool { return e.TheirsMax < e.OursMin }

// What a handshake or a tunnel ends with.
var (
	// ErrHandshake means that the peer does not speak this protocol, or breaks it.
	ErrHandshake = errors.New("tunnel: the peer does not speak the tunnel's handshake")
	// ErrDowngrade means that somebody tried to have an older version chosen.
	ErrDowngrade = errors.New("tunnel: the version chosen is not the best that both sides speak")
	// ErrRefused means that the host accepts no further tunnel, or not this carrier.
	ErrRefused = errors.New("tunnel: the peer refused the connection")
	// ErrSilent means that the peer has said nothing for too long.
	ErrSilent = errors.New("tunnel: the peer does not respond")
	// ErrClosedByPeer means that the other side closed the tunnel.
	ErrClosedByPeer = errors.New("tunnel: closed by the peer")
)
