package terminal

import "errors"

// Checked checks that frames from the shell of an attachment at offset follow the attach protocol: one hello, then
// every byte of output once and in order. Otherwise it closes conn and fails with a [*ProtocolError].
func Checked(conn Conn, offset uint64) Conn { return &checked{Conn: conn, next: offset} }

type checked struct {
	Conn
	next    uint64 // offset of the next byte of output
	greeted bool
}

func (c *checked) ReadFrame() (Frame, error) {
	frame, err := c.Conn.ReadFrame()
	if err != nil {
		return Frame{}, err
	}
	if err := c.check(frame); err != nil {
		return Frame{}, errors.Join(err, c.Close())
	}
	return frame, nil
}

func (c *checked) check(frame Frame) error {
	if c.greeted != (frame.Type != FrameHello) {
		return broken("frame %q, and a hello is the first frame and no other", byte(frame.Type))
	}
	switch frame.Type {
	case FrameHello:
		hello, err := frame.Hello()
		// The gap or data that follows has the offset of the first byte.
		c.greeted, c.next = true, min(c.next, hello.End)
		return err
	case FrameData:
		offset, data, err := frame.Data()
		if err == nil && offset != c.next {
			err = broken("data at %d, but %d comes next", offset, c.next)
		}
		c.next = offset + uint64(len(data))
		return err
	case FrameGap:
		_, to, err := frame.Gap()
		c.next = to
		return err
	}
	return nil
}
