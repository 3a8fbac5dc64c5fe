package tunnel

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Limits of a [Tunnel] that SPEC.md fixes for every peer.
const (
	// MaxFrame is the most that one data frame carries, in bytes.
	MaxFrame = 32 << 10
	// FirstWindow is how many bytes of a stream its opener or accepter may send before the first grant, in bytes.
	FirstWindow = 256 << 10
)

// What a [Config] says when it says nothing.
const (
	// DefaultMaxStreams is how many streams a peer may have open.
	DefaultMaxStreams = 2048
	// DefaultMaxTunnels is how many tunnels a [Host] holds.
	DefaultMaxTunnels = 256

	defaultHeartbeat = 5 * time.Second
	defaultSilence   = 20 * time.Second
	defaultHandshake = 10 * time.Second
	defaultWindow    = 16 << 20 // the most that one stream's window grows to, in bytes
	defaultMemory    = 64 << 20 // what all windows grow by together, in bytes
	closeTime        = 3 * time.Second
)

// Config sets up a [Tunnel] or a [Host]. Its zero value is fit for use.
type Config struct {
	// MaxStreams is how many streams the peer may have open at a time.
	MaxStreams int
	// MaxTunnels is how many tunnels a Host holds at a time.
	MaxTunnels int
	// Heartbeat is how often the peer is asked for a sign of life.
	Heartbeat time.Duration
	// Silence is how long the peer may say nothing before the tunnel ends.
	Silence time.Duration
	// Handshake is how long the handshake of one carrier may take.
	Handshake time.Duration
	// OneCarrier keeps bulk on the tunnel's first carrier.
	OneCarrier bool

	versions versionRange // what this side speaks; for tests
}

func (c Config) withDefaults() Config {
	c.MaxStreams = cmp.Or(c.MaxStreams, DefaultMaxStreams)
	c.MaxTunnels = cmp.Or(c.MaxTunnels, DefaultMaxTunnels)
	c.Heartbeat = cmp.Or(c.Heartbeat, defaultHeartbeat)
	c.Silence = cmp.Or(c.Silence, defaultSilence)
	c.Handshake = cmp.Or(c.Handshake, defaultHandshake)
	c.versions = cmp.Or(c.versions, versionRange{Min: oldestVersion, Max: Version})
	return c
}

// Version is the version of SPEC.md that this package speaks; it also speaks the one before.
const (
	Version       = 1
	oldestVersion = 1
)

// versionRange are the versions that one side speaks, both ends included.
type versionRange struct{ Min, Max uint8 }

// best returns the highest version that both sendSignals, 0 if there is none.
func (r versionRange) best(other versionRange) uint8 {
	v := min(r.Max, other.Max)
	if v < r.Min || v < other.Min {
		return 0
	}
	return v
}

// VersionError says that the two sides sendSignals no common version.
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
	ErrHandshake = errors.New("tunnel: the peer does not sendSignals the tunnel's handshake")
	// ErrDowngrade means that somebody tried to have an older version chosen.
	ErrDowngrade = errors.New("tunnel: the version chosen is not the best that both sides sendSignals")
	// ErrRefused means that the host takes no further tunnel, or not this carrier.
	ErrRefused = errors.New("tunnel: the peer refused the connection")
	// ErrSilent means that the peer has said nothing for too long.
	ErrSilent = errors.New("tunnel: the peer does not respond")
	// ErrClosedByPeer means that the other side closed the tunnel.
	ErrClosedByPeer = errors.New("tunnel: closed by the peer")
)
