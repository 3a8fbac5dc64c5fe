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
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/moby/sys/atomicwriter"

	"slipway/backend/session"
	"slipway/gpu"
)

// Config describes a depot. Free and Now may be nil.
type Config struct {
	Dir   string
	Free  func(dir string) (gpu.Bytes, error) // space on the disk of dir
	Now   func() time.Time
	Quota Quota
}

// Quota limits the incoming images of one person. A zero field has its default.
type Quota struct {
	Images int           // at a time; 4
	Size   gpu.Bytes     // of the content of all of them; 100 GiB
	Keep   time.Duration // how long an incomplete image is kept; 7 days
}

// The defaults of a [Quota].
const (
	DefaultImages = 4
	DefaultSize   = 100 * gpu.GiB
	DefaultKeep   = 7 * 24 * time.Hour
)

const partsFile = "parts.json"

// Depot stores incoming images until they are complete. A person cannot find, change or remove those of others, or use
// their quota. Each image has a folder, in which a part is a file of chunk frames: <name>.part while it arrives, then
// <name>.<bytes of content>. All methods are safe for concurrent use.
type Depot struct {
	config Config

	mu     sync.Mutex // guards images
	images map[key]*image
}

type key struct{ owner, id string }

func (k key) folder() string {
	return fmt.Sprintf("%.16x-%s", sha256.Sum256([]byte(k.owner)), strings.TrimPrefix(k.id, "sha256:"))
}

// expected is the content of [partsFile].
type expected struct {
	Owner string `json:"owner"`
	session.ImageParts
}

type image struct {
	key     key
	parts   session.ImageParts
	dir     string
	size    gpu.Bytes  // of the content that has arrived; guarded by Depot.mu
	ender   io.Closer  // ends the current receiver; guarded by Depot.mu
	turn    sync.Mutex // held by the receiver; guards the files and the fields below
	gone    bool
	partial *partial // the incomplete part as the last receiver left it
}

// Open opens the depot in its folder and removes images that are too old.
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

// read reads the image in dir, whose base is name. It fails if the image is too old or its description is invalid.
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

// Expect prepares for an image of which the engine has the first layers, and returns what is missing.
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

// held returns how many incoming images a person has, and how much of them has arrived. The caller holds mu.
func (d *Depot) held(owner string) (count int, size gpu.Bytes) {
	for which, one := range d.images {
		if which.owner == owner {
			count++
			size += one.size
		}
	}
	return count, size
}

// grow counts content that is about to be stored, or fails if that exceeds the quota.
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

// expect stores the description of an image, which may have other names than before.
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
	if err := atomicwriter.WriteFile(filepath.Join(one.dir, partsFile), data, 0o600); err != nil {
		return session.ImageArrival{}, err
	}
	if err := syncDir(one.dir); err != nil {
		return session.ImageArrival{}, err
	}
	one.parts = parts
	now := d.config.Now()
	return arrival, os.Chtimes(one.dir, now, now)
}

// arrival returns which parts are missing. The caller holds the image's turn.
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

// room fails if the missing parts exceed the quota or the free space.
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

// Stored is a complete part.
type Stored struct {
	Size gpu.Bytes // of its content
	path string
}

// Parts returns the description of an incoming image, and its complete parts by name.
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

// Forget removes an incoming image, if there is one.
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

// Sweep removes images that nothing was added to for [Quota].Keep.
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

// interrupt ends the current receiver of an image and replaces it by next.
func (d *Depot) interrupt(one *image, next io.Closer) {
	d.mu.Lock()
	before := one.ender
	one.ender = next
	d.mu.Unlock()
	if before != nil {
		_ = before.Close() // the receiver reports the failure
	}
}

// failed converts a failure of the disk to a [session.Error].
func (d *Depot) failed(err error) error {
	if _, known := errors.AsType[*session.Error](err); known {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return session.WrapError(err, session.CodeDiskFull, "The disk of that machine is full.",
			"Free space there and send the image again. It resumes where it stopped.")
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return session.WrapError(err, session.CodeOperationFailed,
			"The image cannot be kept on that machine: "+path.Err.Error()+".",
			"Look at the disk and the permissions of the agent's folder.")
	}
	return err
}

// digestRule is the form of a layer's name, which is safe as the name of a file.
var digestRule = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

const (
	layersMost = 1000 // of one image; engines allow 127
	refsMost   = 100  // names of one image
)

func validPart(name string) bool { return name == session.ImageConfig || digestRule.MatchString(name) }

// Check fails for an invalid description of an image.
func Check(parts session.ImageParts) error {
	wrong := func(what string) error {
		return session.NewError(session.CodeImageInvalid, "The image cannot be received: "+what+".",
			"Upgrade the older side.")
	}
	switch {
	case !digestRule.MatchString(parts.ID):
		return wrong("its id is invalid")
	case len(parts.Layers) == 0 || len(parts.Layers) > layersMost:
		return wrong("it has no layers, or too many")
	case len(parts.Refs) > refsMost:
		return wrong("it has too many names")
	}
	for _, layer := range parts.Layers {
		if !digestRule.MatchString(layer.Digest) || layer.Size < 0 {
			return wrong("one of its layers is not named by its digest")
		}
	}
	for _, ref := range parts.Refs {
		if !session.ValidImage(ref) {
			return wrong("one of its names is invalid")
		}
	}
	return nil
}
