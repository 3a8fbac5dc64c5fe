package tunnel

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Each frame that waits in the library costs some hundred bytes beside its own, which a peer that sends single bytes to
// a reader that has stopped could make a multiple of the window.
const (
	crumbSize = 256 // data frames of fewer bytes are crumbs
	maxCrumbs = 256 // of one stream wait in the library; later ones wait beside it
)

// crowded reports whether so many bytes of a stream are to wait beside the library. Once some do all that follow have
// to, so that their order stays. The caller holds in.mu.
func (in *inbox) crowded(n int) bool {
	if n < crumbSize {
		in.crumbs++
	}
	if len(in.stash) == 0 && (n >= crumbSize || in.crumbs <= maxCrumbs) {
		return false
	}
	in.coming = uint32(n)
	return true
}

// aside reads the body of a data frame, which the library does not see.
func (p *conduit) aside(f *flow, length int) error {
	p.pending = nil
	piece := p.crumb[:]
	if length > len(piece) {
		buffer := p.c.t.buffers.get()
		defer p.c.t.buffers.put(buffer)
		piece = *buffer
	}
	n, err := io.ReadFull(p.r, piece[:length])
	f.in.keep(piece[:n])
	if err != nil {
		return fmt.Errorf("tunnel: read: %w", err)
	}
	return nil
}

// keep has bytes wait beside the library, behind all that are in it. They are fewer than were coming when the carrier
// is lost.
func (in *inbox) keep(piece []byte) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.arrived.Add(uint32(len(piece)) - in.coming)
	in.coming = 0
	if in.closed || in.retired || len(piece) == 0 {
		return
	}
	in.stash = append(in.stash, piece...)
	in.aside.Store(true)
	in.settle()
}

// empty reports whether nothing waits in the library. The caller holds in.mu.
func (in *inbox) empty() bool {
	return in.arrived.Load()-in.consumed == uint32(len(in.stash))+in.coming
}

// settle wakes the reader when the library has nothing before what waits beside it. The caller holds in.mu.
func (in *inbox) settle() {
	switch {
	case !in.empty():
	case len(in.stash) > 0:
		in.hurry()
	default:
		in.crumbs = 0
	}
}

// cut takes at most so many bytes of those that wait beside the library, once it is their turn.
func (in *inbox) cut(most int) []byte {
	if !in.aside.Load() {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.stash) == 0 || !in.empty() {
		return nil
	}
	piece := in.stash[:min(most, len(in.stash))]
	if in.stash = in.stash[len(piece):]; len(in.stash) == 0 {
		in.dropStash()
		if in.ended == nil && in.stream != nil {
			_ = in.stream.SetReadDeadline(in.until)
		}
	}
	return piece
}

// dropStash forgets what waits beside the library. The caller holds in.mu.
func (in *inbox) dropStash() {
	in.stash, in.crumbs = nil, 0
	in.aside.Store(false)
}

// updating returns the update of the library's window that a reader owes the peer, if it does. The caller holds in.mu.
func (in *inbox) updating(id uint32) []byte {
	if in.updated && in.consumed-in.update < streamWindow/2 {
		return nil
	}
	in.updated, in.update = true, in.consumed
	b := make([]byte, headerSize, headerSize+updateSize)
	b[0], b[1], b[2] = frameVersion, byte(cmdUpdate), updateSize
	binary.LittleEndian.PutUint32(b[4:], id)
	b = binary.LittleEndian.AppendUint32(b, in.consumed)
	return binary.LittleEndian.AppendUint32(b, streamWindow)
}
