package layers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Config says where a depot keeps what arrives. Free and Now may be nil.
type Config struct {
	Dir  string
	Free func(dir string) (gpu.Bytes, error) // room on the disk of dir
	Now  func() time.Time
}

const (
	// imagesMost is how many images may be expected at a time.
	imagesMost = 8
	// keepFor is how long an image that does not go on is kept.
	keepFor = 7 * 24 * time.Hour
	// partsFile holds what an image is made of.
	partsFile = "parts.json"
)

// Depot keeps what has arrived of images until all of each is there. One image
// has a folder, in which a part is a file of chunk frames: <name>.part while it
// arrives, <name>.<bytes of content> when it is whole. All methods are safe for
// concurrent use.
type Depot struct {
	config Config

	mu     sync.Mutex // guards images and what is in them
	images map[string]*image
}

// image is an image that is expected.
type image struct {
	parts session.ImageParts
	dir   string
	// turn is held by whoever writes its files; ender ends that one.
	turn  sync.Mutex
	ender io.Closer // guarded by Depot.mu
	gone  bool      // guarded by turn
	// partial is the part under way as the last receiver left it; guarded by turn.
	partial *partial
}

// Open opens the depot in its folder and drops what is too old.
func Open(config Config) (*Depot, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, err
	}
	d := &Depot{config: config, images: map[string]*image{}}
	entries, err := os.ReadDir(config.Dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		dir := filepath.Join(config.Dir, entry.Name())
		parts, err := d.read(dir, entry.Name())
		if err != nil {
			if err := os.RemoveAll(dir); err != nil {
				return nil, err
			}
			continue
		}
		d.images[parts.ID] = &image{parts: parts, dir: dir}
	}
	return d, nil
}

// read reads the description of an image whose folder is named name. One that is
// too old, or was never finished, is an error.
func (d *Depot) read(dir, name string) (session.ImageParts, error) {
	var parts session.ImageParts
	info, err := os.Stat(dir)
	if err != nil {
		return parts, err
	}
	if d.config.Now().Sub(info.ModTime()) > keepFor {
		return parts, fmt.Errorf("%s is too old", name)
	}
	data, err := os.ReadFile(filepath.Join(dir, partsFile))
	if err != nil {
		return parts, err
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return parts, err
	}
	if err := Check(parts); err != nil {
		return parts, err
	}
	if folder(parts.ID) != name {
		return parts, fmt.Errorf("%s holds another image", name)
	}
	return parts, nil
}

// folder is the name of an image's folder.
func folder(id string) string { return strings.TrimPrefix(id, "sha256:") }

// Expect makes ready for an image of which the engine has the first layers, and
// says how far the other parts are.
func (d *Depot) Expect(parts session.ImageParts, present int) (session.ImageArrival, error) {
	if err := Check(parts); err != nil {
		return session.ImageArrival{}, err
	}
	d.mu.Lock()
	one, known := d.images[parts.ID]
	if !known {
		if len(d.images) >= imagesMost {
			d.mu.Unlock()
			return session.ImageArrival{}, &session.Error{Code: CodeBusy, Message: fmt.Sprintf("%d images are on their way to this agent already.", imagesMost), Hint: "Wait for one, or cancel one."}
		}
		one = &image{parts: parts, dir: filepath.Join(d.config.Dir, folder(parts.ID))}
		d.images[parts.ID] = one
	}
	d.mu.Unlock()
	arrival, err := d.expect(one, parts, present)
	if err != nil && !known {
		err = errors.Join(err, d.Forget(parts.ID))
	}
	return arrival, d.failed(err)
}

// expect writes down what is expected. The same image may have other names now,
// and more owners.
func (d *Depot) expect(one *image, parts session.ImageParts, present int) (session.ImageArrival, error) {
	d.interrupt(one, nil)
	one.turn.Lock()
	defer one.turn.Unlock()
	if one.gone {
		return session.ImageArrival{}, unknown(parts.ID)
	}
	if err := os.MkdirAll(one.dir, 0o700); err != nil {
		return session.ImageArrival{}, err
	}
	parts.Owners = slices.Concat(one.parts.Owners, parts.Owners)
	slices.Sort(parts.Owners)
	parts.Owners = slices.Compact(parts.Owners)
	arrival, err := d.arrival(one, parts, present)
	if err != nil {
		return session.ImageArrival{}, err
	}
	if err := d.room(parts, arrival); err != nil {
		return session.ImageArrival{}, err
	}
	data, err := json.Marshal(parts)
	if err != nil {
		return session.ImageArrival{}, err
	}
	if err := writeWhole(filepath.Join(one.dir, partsFile), data); err != nil {
		return session.ImageArrival{}, err
	}
	one.parts = parts
	now := d.config.Now()
	return arrival, os.Chtimes(one.dir, now, now)
}

// arrival needs the image's turn.
func (d *Depot) arrival(one *image, parts session.ImageParts, present int) (session.ImageArrival, error) {
	arrival := session.ImageArrival{ID: parts.ID}
	seen := map[string]bool{}
	names := []string{session.ImageConfig}
	for i, layer := range parts.Layers {
		if i < present || seen[layer.Digest] {
			arrival.Present++
		} else {
			names = append(names, layer.Digest)
		}
		seen[layer.Digest] = true
	}
	for _, name := range names {
		if _, _, ok := one.whole(name); ok {
			if name != session.ImageConfig {
				arrival.Present++
			}
			continue
		}
		kept, err := one.kept(name)
		if err != nil {
			return session.ImageArrival{}, err
		}
		arrival.Missing = append(arrival.Missing, session.PartMark{Part: name, Offset: kept})
	}
	return arrival, nil
}

// room says when the disk cannot take what is missing.
func (d *Depot) room(parts session.ImageParts, arrival session.ImageArrival) error {
	if d.config.Free == nil {
		return nil
	}
	free, err := d.config.Free(d.config.Dir)
	if err != nil {
		return err
	}
	sizes := map[string]gpu.Bytes{}
	for _, layer := range parts.Layers {
		sizes[layer.Digest] = layer.Size
	}
	var need gpu.Bytes
	for _, mark := range arrival.Missing {
		need += max(sizes[mark.Part]-mark.Offset, 0)
	}
	if need <= free {
		return nil
	}
	return &session.Error{
		Code: CodeNoSpace, Message: fmt.Sprintf("The image needs %s there, and %s are free.", need, free),
		Hint: "Make room on that machine, for example by removing images that nobody uses.",
	}
}

// Stored is a part that is whole.
type Stored struct {
	Size gpu.Bytes // of its content
	path string
}

// Open opens its content. The caller closes it.
func (s Stored) Open() (io.ReadCloser, error) { return openContent(s.path) }

// Parts returns an image that is expected, and those of its parts that are whole.
func (d *Depot) Parts(id string) (session.ImageParts, map[string]Stored, error) {
	one, err := d.image(id)
	if err != nil {
		return session.ImageParts{}, nil, err
	}
	one.turn.Lock()
	defer one.turn.Unlock()
	whole := map[string]Stored{}
	for _, name := range one.names() {
		if path, size, ok := one.whole(name); ok {
			whole[name] = Stored{Size: size, path: path}
		}
	}
	return one.parts, whole, nil
}

// Forget drops what has arrived of an image. One that is unknown is forgotten already.
func (d *Depot) Forget(id string) error {
	one, err := d.image(id)
	if err != nil {
		return nil
	}
	d.interrupt(one, nil)
	one.turn.Lock()
	defer one.turn.Unlock()
	one.gone = true
	d.mu.Lock()
	delete(d.images, id)
	d.mu.Unlock()
	return d.failed(os.RemoveAll(one.dir))
}

// Sweep drops images that nobody went on with for a week.
func (d *Depot) Sweep() error {
	d.mu.Lock()
	var old []string
	for id, one := range d.images {
		if info, err := os.Stat(one.dir); one.ender == nil && err == nil && d.config.Now().Sub(info.ModTime()) > keepFor {
			old = append(old, id)
		}
	}
	d.mu.Unlock()
	var errs []error
	for _, id := range old {
		errs = append(errs, d.Forget(id))
	}
	return errors.Join(errs...)
}

func (d *Depot) image(id string) (*image, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one, ok := d.images[id]
	if !ok {
		return nil, unknown(id)
	}
	return one, nil
}

func unknown(id string) error {
	return &session.Error{Code: CodeNotFound, Message: "No image " + id + " is expected here.", Hint: "Begin to send it again."}
}

// interrupt ends whoever receives an image and puts next in its place.
func (d *Depot) interrupt(one *image, next io.Closer) {
	d.mu.Lock()
	before := one.ender
	one.ender = next
	d.mu.Unlock()
	if before != nil {
		_ = before.Close() // it fails there, where it is read
	}
}

// failed gives a failure of the disk its code.
func (d *Depot) failed(err error) error {
	var e *session.Error
	switch {
	case err == nil, errors.As(err, &e):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &session.Error{Code: CodeNoSpace, Message: "The disk of that machine is full.", Hint: "Make room there and send the image again; it goes on where it stopped.", Err: err}
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return &session.Error{Code: "image_receive_failed", Message: "The image cannot be kept on that machine: " + path.Err.Error() + ".", Hint: "Look at the disk and the permissions of the agent's folder.", Err: err}
	}
	return err
}
