package layers

import (
	"cmp"
	"crypto/sha256"
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
	Dir   string
	Free  func(dir string) (gpu.Bytes, error) // room on the disk of dir
	Now   func() time.Time
	Quota Quota
}

// Quota is the most that one person has on the way to a depot. A zero field has its default.
type Quota struct {
	Images int           // at a time; 4
	Size   gpu.Bytes     // of the content of all of them; 100 GiB
	Keep   time.Duration // an image of which nothing more arrives; 7 days
}

// The defaults of a [Quota].
const (
	DefaultImages = 4
	DefaultSize   = 100 * gpu.GiB
	DefaultKeep   = 7 * 24 * time.Hour
)

// partsFile holds what an image is made of.
const partsFile = "parts.json"

// Depot keeps what has arrived of images until all of each is there. What one person brings is theirs: others cannot
// find, change or forget it, or take its room. One image has a folder, in which a part is a file of chunk frames:
// <name>.part while it arrives, <name>.<bytes of content> when it is whole. All methods are safe for concurrent use.
type Depot struct {
	config Config

	mu     sync.Mutex // guards images and what is in them
	images map[key]*image
}

// key is an image that a person brings.
type key struct{ owner, id string }

// folder is the name of the folder of an image.
func (k key) folder() string {
	return fmt.Sprintf("%.16x-%s", sha256.Sum256([]byte(k.owner)), strings.TrimPrefix(k.id, "sha256:"))
}

// expected is what is written down of an image.
type expected struct {
	Owner string `json:"owner"`
	session.ImageParts
}

// image is an image that is expected.
type image struct {
	key   key
	parts session.ImageParts
	dir   string
	size  gpu.Bytes // of the content that has arrived; guarded by Depot.mu
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
	q := &config.Quota
	q.Images, q.Size, q.Keep = cmp.Or(q.Images, DefaultImages), cmp.Or(q.Size, DefaultSize), cmp.Or(q.Keep, DefaultKeep)
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, err
	}
	d := &Depot{config: config, images: map[key]*image{}}
	entries, err := os.ReadDir(config.Dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		dir := filepath.Join(config.Dir, entry.Name())
		one, err := d.read(dir, entry.Name())
		if err != nil {
			if err := os.RemoveAll(dir); err != nil {
				return nil, err
			}
			continue
		}
		d.images[one.key] = one
	}
	return d, nil
}

// read reads the description of an image whose folder is named name. One that is too old, or was never finished, is an
// error.
func (d *Depot) read(dir, name string) (*image, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if d.config.Now().Sub(info.ModTime()) > d.config.Quota.Keep {
		return nil, fmt.Errorf("%s is too old", name)
	}
	data, err := os.ReadFile(filepath.Join(dir, partsFile))
	if err != nil {
		return nil, err
	}
	var found expected
	if err := json.Unmarshal(data, &found); err != nil {
		return nil, err
	}
	if err := Check(found.ImageParts); err != nil {
		return nil, err
	}
	one := &image{key: key{found.Owner, found.ID}, parts: found.ImageParts, dir: dir}
	if one.key.folder() != name {
		return nil, fmt.Errorf("%s holds another image", name)
	}
	one.size = one.arrived()
	return one, nil
}

// Expect makes ready for an image of which the engine has the first layers, and says how far the other parts are.
func (d *Depot) Expect(owner string, parts session.ImageParts, present int) (session.ImageArrival, error) {
	if err := Check(parts); err != nil {
		return session.ImageArrival{}, err
	}
	which := key{owner, parts.ID}
	d.mu.Lock()
	one, known := d.images[which]
	if !known {
		if count, _ := d.held(owner); count >= d.config.Quota.Images {
			d.mu.Unlock()
			return session.ImageArrival{}, session.NewError(session.CodeImageConflict,
				fmt.Sprintf("%d of your images are on their way to this agent already.", count),
				"Wait for one, or cancel one.")
		}
		one = &image{key: which, parts: parts, dir: filepath.Join(d.config.Dir, which.folder())}
		d.images[which] = one
	}
	d.mu.Unlock()
	arrival, err := d.expect(one, parts, present)
	if err != nil && !known {
		err = errors.Join(err, d.Forget(owner, parts.ID))
	}
	return arrival, d.failed(err)
}

// held is how many images of a person are on the way, and how much of them has arrived; it needs mu.
func (d *Depot) held(owner string) (count int, size gpu.Bytes) {
	for which, one := range d.images {
		if which.owner == owner {
			count++
			size += one.size
		}
	}
	return count, size
}

// grow counts content that is about to be kept of an image, or refuses it.
func (d *Depot) grow(one *image, by gpu.Bytes) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, size := d.held(one.key.owner); size+by > d.config.Quota.Size {
		return d.tooLarge()
	}
	one.size += by
	return nil
}

func (d *Depot) tooLarge() error {
	return session.NewError(session.CodeTooLarge,
		fmt.Sprintf("Your images on their way to this agent may take %s together.", d.config.Quota.Size),
		"Cancel the transfer of another image, or ask an admin of that machine for more.")
}

// expect writes down what is expected. The same image may have other names now.
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
	arrival, err := d.arrival(one, parts, present)
	if err != nil {
		return session.ImageArrival{}, err
	}
	size := one.arrived()
	d.mu.Lock()
	one.size = size
	d.mu.Unlock()
	if err := d.room(one, parts, arrival); err != nil {
		return session.ImageArrival{}, err
	}
	data, err := json.Marshal(expected{one.key.owner, parts})
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
	arrival := session.ImageArrival{ID: parts.ID, Present: len(parts.Layers)}
	there := parts.Layers[:min(present, len(parts.Layers))]
	for _, name := range names(parts) {
		if slices.ContainsFunc(there, func(l session.ImageLayer) bool { return l.Digest == name }) {
			continue
		}
		if _, _, ok := one.whole(name); ok {
			continue
		}
		kept, err := one.kept(name)
		if err != nil {
			return session.ImageArrival{}, err
		}
		if name != session.ImageConfig {
			arrival.Present--
		}
		arrival.Missing = append(arrival.Missing, session.PartMark{Part: name, Offset: kept})
	}
	return arrival, nil
}

// room says when the person or the disk has no room for what is missing.
func (d *Depot) room(one *image, parts session.ImageParts, arrival session.ImageArrival) error {
	sizes := map[string]gpu.Bytes{}
	for _, layer := range parts.Layers {
		sizes[layer.Digest] = layer.Size
	}
	var need gpu.Bytes
	for _, mark := range arrival.Missing {
		if need += max(sizes[mark.Part]-mark.Offset, 0); need > d.config.Quota.Size {
			return d.tooLarge()
		}
	}
	d.mu.Lock()
	_, held := d.held(one.key.owner)
	d.mu.Unlock()
	if held+need > d.config.Quota.Size {
		return d.tooLarge()
	}
	if d.config.Free == nil {
		return nil
	}
	free, err := d.config.Free(d.config.Dir)
	if err != nil || need <= free {
		return err
	}
	return session.NewError(session.CodeDiskFull, fmt.Sprintf("The image needs %s there, and %s are free.", need, free),
		"Free space on that machine, for example by removing unused images.")
}

// Stored is a part that is whole.
type Stored struct {
	Size gpu.Bytes // of its content
	path string
}

// Open opens its content. The caller closes it.
func (s Stored) Open() (io.ReadCloser, error) { return openContent(s.path) }

// Parts returns an image that is expected, and those of its parts that are whole.
func (d *Depot) Parts(owner, id string) (session.ImageParts, map[string]Stored, error) {
	one, err := d.image(owner, id)
	if err != nil {
		return session.ImageParts{}, nil, err
	}
	one.turn.Lock()
	defer one.turn.Unlock()
	whole := map[string]Stored{}
	for _, name := range names(one.parts) {
		if path, size, ok := one.whole(name); ok {
			whole[name] = Stored{Size: size, path: path}
		}
	}
	return one.parts, whole, nil
}

// Forget drops what has arrived of an image. One that is unknown is forgotten already.
func (d *Depot) Forget(owner, id string) error {
	one, err := d.image(owner, id)
	if err != nil {
		return nil
	}
	d.interrupt(one, nil)
	one.turn.Lock()
	defer one.turn.Unlock()
	one.gone = true
	d.mu.Lock()
	delete(d.images, one.key)
	d.mu.Unlock()
	return d.failed(os.RemoveAll(one.dir))
}

// Sweep drops images of which nothing more arrived for as long as they are kept.
func (d *Depot) Sweep() error {
	d.mu.Lock()
	var old []key
	for which, one := range d.images {
		if info, err := os.Stat(one.dir); one.ender == nil && err == nil &&
			d.config.Now().Sub(info.ModTime()) > d.config.Quota.Keep {
			old = append(old, which)
		}
	}
	d.mu.Unlock()
	var errs []error
	for _, which := range old {
		errs = append(errs, d.Forget(which.owner, which.id))
	}
	return errors.Join(errs...)
}

func (d *Depot) image(owner, id string) (*image, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one, ok := d.images[key{owner, id}]
	if !ok {
		return nil, unknown(id)
	}
	return one, nil
}

func unknown(id string) error {
	return session.NewError(session.CodeImageUnexpected, "No image "+id+" is expected here.", "Send it again.")
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
		return &session.Error{Code: session.CodeDiskFull, Message: "The disk of that machine is full.",
			Hint: "Free space there and send the image again. It resumes where it stopped.", Err: err}
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return &session.Error{Code: session.CodeOperationFailed, Message: "The image cannot be kept on that machine: " +
			path.Err.Error() + ".", Hint: "Look at the disk and the permissions of the agent's folder.", Err: err}
	}
	return err
}
