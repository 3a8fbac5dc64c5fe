package enginetest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

// Fake is an engine in memory. It does nothing on its own: containers end,
// crash and run out of memory when a test says so, and any call can be made to
// hang or fail. It outlives whoever uses it, so that handing the same Fake to a
// second agent is what a restart of the agent looks like.
type Fake struct {
	config FakeConfig

	mu         sync.Mutex // guards everything below
	changed    chan struct{}
	down       bool
	closed     int
	number     int
	containers map[string]*fakeContainer // by id
	images     map[string]session.Image  // by full reference
	remote     map[string]PullScript     // by full reference
	calls      map[Call]int
	gates      map[Call]*Gate
	faults     map[Call][]fault
	watchers   map[*engine.Changes]struct{}
	networks   map[string]engine.Network // by name
	attachment engine.Attachment
	removed    []string // home volumes that were removed, by container name
}

var _ engine.Engine = (*Fake)(nil)

// FakeConfig says what a [Fake] looks like. The zero value will do.
type FakeConfig struct {
	Instance string    // value of the instance label; others' containers are not listed
	CPUs     int       // 0: 8
	Memory   gpu.Bytes // 0: 16 GiB
	// ServeGuest plays the guest of a container on conn until conn breaks. nil
	// plays the container's [Guest].
	ServeGuest func(c engine.Container, conn net.Conn)
	// OnStart is called after a container has started, without a lock, for
	// example to let a batch command end at once.
	OnStart func(id string, c engine.Container)
}

type fakeContainer struct {
	spec    engine.Container
	state   engine.State
	log     fakeLog
	stats   engine.Stats
	guest   *Guest
	conn    net.Conn // engine's end of the guest connection, nil before the first
	noGuest bool
}

// NewFake returns an engine that has [ImageMinimal] and no containers.
func NewFake(config FakeConfig) *Fake {
	if config.CPUs == 0 {
		config.CPUs = 8
	}
	if config.Memory == 0 {
		config.Memory = 16 * gpu.GiB
	}
	f := &Fake{
		config: config, changed: make(chan struct{}),
		containers: map[string]*fakeContainer{}, images: map[string]session.Image{}, remote: map[string]PullScript{},
		calls: map[Call]int{}, gates: map[Call]*Gate{}, faults: map[Call][]fault{},
		watchers: map[*engine.Changes]struct{}{},
		networks: map[string]engine.Network{}, attachment: engine.Attachment{Way: engine.AttachSim},
	}
	f.AddImage(ImageMinimal)
	return f
}

func (f *Fake) Info(ctx context.Context) (engine.Info, error) {
	if err := f.enter(ctx, CallInfo); err != nil {
		return engine.Info{}, err
	}
	return engine.Info{Name: "sim", Version: "fake", CPUs: f.config.CPUs, Memory: f.config.Memory, OS: "linux",
		Arch: "amd64", Cgroup: 2}, f.leave(CallInfo)
}

// Close implements [engine.Engine]. The Fake stays usable: containers go on.
func (f *Fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
	return nil
}

func (f *Fake) Create(ctx context.Context, c engine.Container) (string, error) {
	if err := f.enter(ctx, CallCreate); err != nil {
		return "", err
	}
	id, err := f.create(c)
	if err != nil {
		return "", err
	}
	return id, f.leave(CallCreate)
}

func (f *Fake) create(c engine.Container) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.Name == "" || c.Image == "" || c.Memory < 0 {
		return "", &session.Error{Code: "engine_create_invalid", Message: "A container needs a name and an image."}
	}
	if _, ok := f.image(c.Image); !ok {
		return "", &session.Error{Code: "engine_create_no-image",
			Message: fmt.Sprintf("The image %s is not on this machine.", c.Image), Hint: "Pull it first."}
	}
	if _, ok := f.networks[c.Network]; !ok && c.Network != "" {
		return "", &session.Error{Code: "engine_create_no-network",
			Message: fmt.Sprintf("The network %s does not exist.", c.Network), Hint: "Launch the session again."}
	}
	for id, other := range f.containers {
		if other.spec.Name != c.Name {
			continue
		}
		if maps.Equal(other.spec.Labels, c.Labels) {
			return id, nil
		}
		return "", &session.Error{Code: "engine_create_name-taken",
			Message: fmt.Sprintf("Another container is named %s.", c.Name), Hint: "Remove it or choose another name."}
	}
	f.number++
	id := fmt.Sprintf("fake%08x", f.number)
	c.Labels, c.CPUs, c.Mounts = maps.Clone(c.Labels), slices.Clone(c.CPUs), slices.Clone(c.Mounts)
	f.containers[id] = &fakeContainer{
		spec:  c,
		guest: newGuest(),
		state: engine.State{ID: id, Name: c.Name, Labels: maps.Clone(c.Labels), Created: true, CreatedAt: time.Now()},
		stats: engine.Stats{Memory: 8 * gpu.MiB, MemLimit: c.Memory, Pids: 2},
	}
	f.touch(id)
	return id, nil
}

func (f *Fake) Start(ctx context.Context, id string) error {
	if err := f.enter(ctx, CallStart); err != nil {
		return err
	}
	started, err := f.start(id)
	if err != nil {
		return err
	}
	if started != nil && f.config.OnStart != nil {
		f.config.OnStart(id, *started)
	}
	return f.leave(CallStart)
}

func (f *Fake) start(id string) (*engine.Container, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.containers[id]
	if !ok {
		return nil, notFound(id)
	}
	if c.state.Running {
		return nil, nil
	}
	c.state.Running, c.state.Created, c.state.StartedAt = true, false, time.Now()
	f.touch(id)
	spec := c.spec
	return &spec, nil
}

// Guest implements [engine.Containers]. Each call ends the connection of the
// call before.
func (f *Fake) Guest(ctx context.Context, id string) (net.Conn, error) {
	if err := f.enter(ctx, CallGuest); err != nil {
		return nil, err
	}
	for {
		conn, wait, err := f.connect(id)
		if err != nil || conn != nil {
			return conn, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// connect returns a connection, or the channel to wait for before trying again.
func (f *Fake) connect(id string) (net.Conn, <-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.containers[id]
	switch {
	case !ok:
		return nil, nil, notFound(id)
	case !c.state.Created && !c.state.Running:
		return nil, nil, &session.Error{Code: "engine_guest_exited",
			Message: "The container ended before its guest could be reached.", Hint: "Read the session's log."}
	case !c.state.Running || c.noGuest:
		return nil, f.changed, nil
	}
	if c.conn != nil {
		c.conn.Close() //nolint:errcheck // a pipe cannot fail to close
	}
	near, far := net.Pipe()
	c.conn = near
	serve, spec, guest := f.config.ServeGuest, c.spec, c.guest
	go func() {
		defer far.Close() //nolint:errcheck // a pipe cannot fail to close
		if serve != nil {
			serve(spec, far)
			return
		}
		guest.serve(far)
	}()
	return near, nil, nil
}

// Stop implements [engine.Containers]. The container ends at once with 143, as
// one does that obeys SIGTERM.
func (f *Fake) Stop(ctx context.Context, id string, _ time.Duration) error {
	if err := f.enter(ctx, CallStop); err != nil {
		return err
	}
	f.end(id, 143, nil)
	return f.leave(CallStop)
}

func (f *Fake) Remove(ctx context.Context, id string) error {
	if err := f.enter(ctx, CallRemove); err != nil {
		return err
	}
	f.remove(id)
	return f.leave(CallRemove)
}

func (f *Fake) remove(id string) {
	f.end(id, 137, nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.containers[id]; ok {
		f.removed = append(f.removed, c.spec.Name)
		delete(f.containers, id)
		f.touch(id)
	}
}

func (f *Fake) List(ctx context.Context) ([]engine.State, error) {
	if err := f.enter(ctx, CallList); err != nil {
		return nil, err
	}
	return f.States(), f.leave(CallList)
}

// Others implements [engine.Containers]: a Fake belongs to one agent.
func (f *Fake) Others(context.Context) ([]engine.State, error) { return nil, nil }

func (f *Fake) Inspect(ctx context.Context, id string) (engine.State, error) {
	if err := f.enter(ctx, CallInspect); err != nil {
		return engine.State{}, err
	}
	f.mu.Lock()
	c, ok := f.containers[id]
	var state engine.State
	if ok {
		state = c.snapshot()
	}
	f.mu.Unlock()
	if !ok {
		return engine.State{}, notFound(id)
	}
	return state, f.leave(CallInspect)
}

// Stats implements [engine.Containers]. CPU grows with the time that the
// container has run unless [Fake.SetStats] says otherwise.
func (f *Fake) Stats(ctx context.Context, ids []string) (map[string]engine.Stats, error) {
	if err := f.enter(ctx, CallStats); err != nil {
		return nil, err
	}
	f.mu.Lock()
	samples := map[string]engine.Stats{}
	for _, id := range ids {
		c, ok := f.containers[id]
		if !ok || !c.state.Running {
			continue
		}
		s := c.stats
		if s.At.IsZero() {
			s.At = time.Now()
			s.CPU = s.At.Sub(c.state.StartedAt) / 10
		}
		samples[id] = s
	}
	f.mu.Unlock()
	return samples, f.leave(CallStats)
}

func (f *Fake) Logs(ctx context.Context, id string, opts session.LogOptions) (io.ReadCloser, error) {
	if err := f.enter(ctx, CallLogs); err != nil {
		return nil, err
	}
	f.mu.Lock()
	_, ok := f.containers[id]
	f.mu.Unlock()
	if !ok {
		return nil, notFound(id)
	}
	return f.readLog(ctx, id, opts), f.leave(CallLogs)
}

func (f *Fake) Images(ctx context.Context) ([]session.Image, error) {
	if err := f.enter(ctx, CallImages); err != nil {
		return nil, err
	}
	f.mu.Lock()
	images := slices.Collect(maps.Values(f.images))
	f.mu.Unlock()
	sort.Slice(images, func(i, j int) bool { return images[i].ID < images[j].ID })
	images = slices.CompactFunc(images, func(a, b session.Image) bool { return a.ID == b.ID }) // of several names
	return images, f.leave(CallImages)
}

func (f *Fake) Image(ctx context.Context, ref string) (session.Image, error) {
	if err := f.enter(ctx, CallImage); err != nil {
		return session.Image{}, err
	}
	f.mu.Lock()
	image, ok := f.image(ref)
	for _, other := range f.images {
		if other.ID == ref {
			image, ok = other, true
		}
	}
	f.mu.Unlock()
	if !ok {
		return session.Image{}, &session.Error{Code: "engine_image_not-found",
			Message: fmt.Sprintf("The image %s is not on this machine.", ref), Hint: "Pull it first."}
	}
	return image, f.leave(CallImage)
}

// Pull implements [engine.Images] as the image's [PullScript] says.
func (f *Fake) Pull(ctx context.Context, ref string, logins bool,
	progress func(session.Pull)) (private bool, err error) {
	if err := f.enter(ctx, CallPull); err != nil {
		return false, err
	}
	f.mu.Lock()
	script, ok := f.remote[fullRef(ref)]
	f.mu.Unlock()
	if !ok {
		return false, &session.Error{Code: "engine_pull_not-found",
			Message: fmt.Sprintf("No registry has the image %s.", ref), Hint: "Check its name and tag."}
	}
	if script.Private && !logins {
		return false, &session.Error{Code: "engine_pull_forbidden",
			Message: fmt.Sprintf("The registry does not let you pull %s.", ref), Hint: "Log in."}
	}
	if err := script.play(ctx, progress); err != nil {
		return false, err
	}
	f.AddImage(ref)
	return script.Private, f.leave(CallPull)
}

// touch wakes everyone who waits and tells watchers of id. The caller holds mu.
func (f *Fake) touch(id string) {
	close(f.changed)
	f.changed = make(chan struct{})
	c, ok := f.containers[id]
	if !ok || !f.ours(c) {
		return
	}
	for w := range f.watchers {
		w.Push(c.snapshot())
	}
}

func (f *Fake) ours(c *fakeContainer) bool {
	instance, labelled := c.spec.Labels[engine.LabelInstance]
	return labelled && (f.config.Instance == "" || instance == f.config.Instance)
}

func (c *fakeContainer) snapshot() engine.State {
	state := c.state
	state.Labels = maps.Clone(c.state.Labels)
	return state
}

func notFound(id string) error {
	return &session.Error{Code: "engine_read_not-found", Message: fmt.Sprintf("There is no container %s.", id)}
}

// image finds an image by its name, or by its id behind any name; it needs mu.
func (f *Fake) image(ref string) (session.Image, bool) {
	if id := session.ImageDigest(ref); id != "" {
		for _, image := range f.images {
			if image.ID == id {
				return image, true
			}
		}
	}
	image, ok := f.images[fullRef(ref)]
	return image, ok
}

// fullRef adds the tag that a reference without one means.
func fullRef(ref string) string {
	last := ref[strings.LastIndex(ref, "/")+1:]
	if strings.ContainsAny(last, ":@") {
		return ref
	}
	return ref + ":latest"
}
