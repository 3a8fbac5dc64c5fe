package resume

// stretch is the part of a stream of bytes that is still needed. Its zero value
// is at the beginning of the stream.
type stretch struct {
	begin uint64 // offset of the first byte of data in the stream
	data  []byte // bytes in it never change once they are there
}

// end is the offset behind the last byte.
func (s *stretch) end() uint64 { return s.begin + uint64(len(s.data)) }

// add appends a copy of p.
func (s *stretch) add(p []byte) { s.data = append(s.data, p...) }

// from returns up to most bytes that begin at an offset within the stretch. They
// stay valid when bytes are added or dropped.
func (s *stretch) from(offset uint64, most int) []byte {
	rest := s.data[offset-s.begin:]
	return rest[:min(len(rest), most)]
}

// drop forgets the bytes before an offset within the stretch.
func (s *stretch) drop(offset uint64) {
	s.data = s.data[offset-s.begin:]
	s.begin = offset
	if len(s.data) == 0 {
		s.data = nil // what was large once is not kept for what may be small
	}
}
