package layers

import (
	"encoding/json"
	"errors"
	"io"
	"slices"

	"slipway/backend/session"
	"slipway/gpu"
)

// syncEvery is how much content is written before it is made to last and told.
const syncEvery = 8 * gpu.MiB

// told is one line of what a receiver answers.
type told struct {
	session.PartMark
	Whole   bool     `json:"whole,omitempty"` // all of the part is there, and is what its digest says
	Failure *failure `json:"failure,omitempty"`
}

// failure is a session.Error as it travels.
type failure struct {
	Code    session.Code `json:"code"`
	Message string       `json:"message"`
	Hint    string       `json:"hint,omitempty"`
}

// Receive takes a stream for an image that is expected, and answers with how far each part is kept. It closes conn in
// the end. Another one that begins for the same image ends this one with image_receive_replaced.
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

// receiving reports whether conn is still the one that an image comes by.
func (d *Depot) receiving(one *image, conn io.Closer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return one.ender == conn
}

// answer tells a failure as the last line.
func (d *Depot) answer(conn io.Writer, err error) error {
	e := session.AsError(d.failed(err), session.CodeOperationFailed)
	// One that is gone is told nothing; the failure is what counts.
	_ = json.NewEncoder(conn).Encode(told{Failure: &failure{Code: e.Code, Message: e.Message, Hint: e.Hint}})
	return e
}

// receiver reads one stream; it has the turn of its image.
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
		err = errors.Join(r.leave(), err)
		// A stream that was cut leaves nobody to tell.
		var e *session.Error
		if failed := r.depot.failed(err); errors.As(failed, &e) {
			return r.depot.answer(r.conn, failed)
		}
		return err
	}
}

// take takes one frame.
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
		return corrupt("part %s is there already", mark.Part)
	}
	under, err := r.image.open(mark.Part)
	if err != nil {
		return err
	}
	if under.content != mark.Offset {
		return errors.Join(corrupt("a part goes on at %d, and %d bytes of it are there", mark.Offset, under.content),
			r.put(under))
	}
	r.under, r.synced = under, under.content
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

// leave keeps what there is of the part under way for the next receiver.
func (r *receiver) leave() error {
	if r.under == nil {
		return nil
	}
	under := r.under
	r.under = nil
	return r.put(under)
}

func (r *receiver) put(under *partial) error {
	err := errors.Join(under.file.Sync(), under.file.Close())
	under.file = nil
	return err
}
