package python

import "github.com/tetratelabs/wazero/experimental"

// pageSize is the unit in which WebAssembly counts memory.
const pageSize = 64 << 10

// load is what one run holds and does. Its methods are called by that run alone.
type load struct {
	tell func(cpus float64, bytes int64) bool
	kill func()
	held int64
}

// hold counts memory. It reports false, and kills the run, where there is not so much.
func (l *load) hold(bytes int64) bool {
	if l.tell != nil && !l.tell(1, bytes) {
		l.kill()
		return false
	}
	l.held = bytes
	return true
}

// rest does something that keeps no processor busy.
func (l *load) rest(do func()) {
	if l.tell == nil {
		do()
		return
	}
	l.tell(0, l.held)
	do()
	l.tell(1, l.held)
}

// memory is that of one run. It is accounted for as it grows.
type memory struct {
	load *load
	data []byte
}

func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

func (m *memory) Reallocate(size uint64) []byte {
	if size > mostMemory || !m.load.hold(int64(size)) { //nolint:gosec // it is bounded
		return nil
	}
	if size > uint64(cap(m.data)) {
		data := make([]byte, size, max(size, min(2*uint64(cap(m.data)), mostMemory)))
		copy(data, m.data)
		m.data = data
	}
	m.data = m.data[:size]
	return m.data
}

func (m *memory) Free() { m.data = nil }
