package layers

import (
	"encoding/json"
	"errors"
	"io"
	"slices"

	"slipway/backend/session"
	"slipway/gpu"
)

// syncEvery is how much content is written before it is synced and reported.
const syncEvery = 8 * gpu.MiB

// told is one line of a receiver's answer.
type told struct {
	session.PartMark
	Whole   bool           `json:"whole,omitempty"` // the part is complete and has its digest
	Failure *session.Cause `json:"failure,omitempty"`
}

// Receive reads a stream for an incoming image, and answers with how much of each part is stored. It closes conn. A
// second stream for the same image ends this one with image_receive_replaced.
func (d *Depot) Receive(owner, id string, conn io.ReadWriteCloser) error {
	one, err := d.image(owner, id)
	if err != nil {
		return errors.Join(d.answer(conn, err), conn.Close())
	}
	d.interrupt(one, conn)
	one.turn.Lock()
	defer one.turn.Unlock()
	replaced := session.NewError(session.CodeImageReplaced, "Another transfer of the same image took over.",
		"Nothing is lost.")
	if !d.receiving(one, conn) || one.gone {
		return replaced
	}
	r := &receiver{depot: d, image: one, conn: conn, tell: json.NewEncoder(conn)}
	err = r.run()
	if !d.receiving(one, conn) {
		return errors.Join(replaced, err)
	}
	d.interrupt(one, nil) // closes conn, after the answer
	return err
}

// receiving reports whether conn is the current receiver of an image.
func (d *Depot) receiving(one *image, conn io.Closer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return one.ender == conn
}

// answer sends a failure as the last line, and returns it.
func (d *Depot) answer(conn io.Writer, err error) error {
	e := session.AsError(d.failed(err), session.CodeOperationFailed)
	_ = json.NewEncoder(conn).Encode(told{Failure: e.Cause()}) // the sender may be gone
	return e
}

// receiver reads one stream. It has the turn of its image.
type receiver struct {
	depot  *Depot
	image  *image
	conn   io.ReadWriteCloser
	tell   *json.Encoder
	under  *partial // nil between two parts
	synced gpu.Bytes
}

func (r *receiver) run() error {
	unpack, err := newUnpacker()
	if err != nil {
		return err
	}
	defer unpack.close()
	reader := NewReader(r.conn)
	for {
		frame, err := reader.Next()
		if err == nil {
			err = r.take(frame, unpack)
		}
		if err == nil {
			continue
		}
		if err == io.EOF { //nolint:errorlint // exactly the end of a stream, which Next returns unwrapped
			err = nil
		}
		err = r.depot.failed(errors.Join(r.leave(), err))
		if _, known := errors.AsType[*session.Error](err); known { // else the stream was cut
			return r.depot.answer(r.conn, err)
		}
		return err
	}
}

func (r *receiver) take(frame Frame, unpack *unpacker) error {
	switch frame.Kind {
	case kindPart:
		return r.begin(frame.Mark)
	case kindChunk:
		if r.under == nil {
			return corrupt("a chunk belongs to no part")
		}
		content, err := unpack.open(frame)
		if err != nil {
			return err
		}
		if err := r.depot.grow(r.image, gpu.Bytes(len(content))); err != nil {
			return err
		}
		if err := r.under.write(frame, content); err != nil {
			return err
		}
		if r.under.content-r.synced < syncEvery {
			return nil
		}
		return r.sync()
	}
	return r.end()
}

func (r *receiver) begin(mark session.PartMark) error {
	if r.under != nil {
		return corrupt("a part begins within another")
	}
	if !slices.Contains(names(r.image.parts), mark.Part) {
		return corrupt("the image has no part %s", mark.Part)
	}
	if _, _, ok := r.image.whole(mark.Part); ok {
		return corrupt("part %s already exists", mark.Part)
	}
	under, err := r.image.open(mark.Part)
	if err != nil {
		return err
	}
	r.under, r.synced = under, under.content
	if under.content != mark.Offset {
		return corrupt("a part continues at %d, but %d bytes of it exist", mark.Offset, under.content)
	}
	return nil
}

func (r *receiver) sync() error {
	if err := r.under.file.Sync(); err != nil {
		return err
	}
	r.synced = r.under.content
	return r.tell.Encode(told{PartMark: session.PartMark{Part: r.under.name, Offset: r.synced}})
}

func (r *receiver) end() error {
	if r.under == nil {
		return corrupt("a part ends that did not begin")
	}
	under := r.under
	r.under = nil
	if err := r.image.finish(under); err != nil {
		return err
	}
	return r.tell.Encode(told{PartMark: session.PartMark{Part: under.name, Offset: under.content}, Whole: true})
}

// leave closes the file of an incomplete part, which the next receiver continues.
func (r *receiver) leave() error {
	if r.under == nil {
		return nil
	}
	err := errors.Join(r.under.file.Sync(), r.under.file.Close())
	r.under.file, r.under = nil, nil
	return err
}
