// Package devices attaches devices to containers of a Docker daemon, in the best way that works when tried.
package devices

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
	"slipway/gpu"
)

// noWayFor is how long a machine counts as one without a way to attach devices; a person may install what is missing.
const noWayFor = 20 * time.Second

// Devices attaches devices to containers of one daemon. It is safe for concurrent use.
type Devices struct {
	daemon *daemon.Daemon
	config Config
	turn   chan struct{} // holds one token; who takes it may try ways

	mu    sync.Mutex // guards everything below
	of    string     // id of the daemon that found is about
	found *engine.Attachment
	at    time.Time
	tried *session.Error // why there is no way; nil where there is one
}

// Config describes how to attach devices.
type Config struct {
	Instance string                                     // value of [LabelTrial] of our containers
	Way      engine.AttachWay                           // chosen by a person; empty: the best that works
	MPS      string                                     // CUDA's MPS pipe directory; empty: where CUDA looks
	Guest    func(arch string) (path string, err error) // a program for a Go architecture name that ends at once
}

// New returns the devices of a daemon.
func New(on *daemon.Daemon, config Config) *Devices {
	config.MPS = cmp.Or(config.MPS, os.Getenv(envPipe), mpsDefault)
	d := &Devices{daemon: on, config: config, turn: make(chan struct{}, 1)}
	d.turn <- struct{}{}
	return d
}

// cached returns what was found for a daemon; ok is false if it must be tried.
func (d *Devices) cached(of string, now time.Time) (found engine.Attachment, err error, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.found == nil || d.of != of || d.tried != nil && now.Sub(d.at) > noWayFor {
		return found, nil, false
	}
	found = *d.found
	found.Tried = slices.Clone(found.Tried)
	if d.tried != nil {
		err = d.tried
	}
	return found, err, true
}

func (d *Devices) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found = nil
}

// Attachment says how devices are attached. It tries each way once per daemon with an empty container.
func (d *Devices) Attachment(ctx context.Context, fresh bool) (engine.Attachment, error) {
	if fresh {
		d.forget()
	}
	if err := ctx.Err(); err != nil {
		return engine.Attachment{}, daemon.Failure(ctx, err)
	}
	found, err := d.attachment(ctx, nil)
	if found.Way == engine.AttachNone {
		err = nil // no way is an answer here; Tried says why
	}
	return found, err
}

// attachment is Attachment that tries the ways with these devices. Without a way it fails as [attachTexts] say.
func (d *Devices) attachment(ctx context.Context, ids []string) (engine.Attachment, error) {
	facts, err := d.daemon.Facts(ctx)
	if err != nil {
		return engine.Attachment{}, err
	}
	if d.config.Way == engine.AttachNone || d.config.Way != "" && !facts.Podman {
		hard := d.config.Way == engine.AttachCDI && hardLimit(facts)
		return engine.Attachment{Way: d.config.Way, HardLimit: hard, MPS: d.mpsRuns()}, nil
	}
	if found, err, ok := d.cached(facts.ID, time.Now()); ok {
		return found, err
	}
	select {
	case <-d.turn:
		defer func() { d.turn <- struct{}{} }()
	case <-ctx.Done():
		return engine.Attachment{}, daemon.Failure(ctx, ctx.Err())
	}
	if found, err, ok := d.cached(facts.ID, time.Now()); ok { // another call was quicker
		return found, err
	}
	if facts, err = d.daemon.AskFacts(ctx); err != nil { // what was installed meanwhile counts
		return engine.Attachment{}, err
	}
	found, why, err := d.try(ctx, facts, ids)
	if err != nil {
		return engine.Attachment{}, err
	}
	found.MPS = d.mpsRuns()
	d.mu.Lock()
	d.of, d.found, d.tried, d.at = facts.ID, &found, why, time.Now()
	d.mu.Unlock()
	if why != nil {
		return found, why
	}
	return found, nil
}

// try tries the ways, best first, until a container starts. why is the reason against the best of them; err is a daemon
// that does not answer or a ctx that ended.
func (d *Devices) try(ctx context.Context, facts *daemon.Facts,
	ids []string) (found engine.Attachment, why *session.Error, err error) {
	switch {
	case !facts.Here:
		why = session.NewError(session.CodeEngineUnsupported,
			"The Docker daemon at "+d.daemon.Host()+" does not share this machine's devices.",
			"Run a Slipway agent on the machine where Docker runs.")
	case facts.Podman:
		why = ignored.failure(nil)
	}
	if why != nil {
		found = engine.Attachment{Way: engine.AttachNone}
		found.Tried = []engine.Attempt{{Way: found.Way, Text: why.Message, Remedy: why.Hint}}
		return found, why, nil
	}
	for _, way := range []engine.AttachWay{engine.AttachCDI, engine.AttachRequest, engine.AttachRuntime} {
		failed := excludes(facts, way, ids)
		if failed == nil {
			if failed, err = d.trial(ctx, facts, way, ids); err != nil {
				return engine.Attachment{}, nil, err
			}
		}
		if failed == nil {
			found.Tried = append(found.Tried, engine.Attempt{Way: way, Text: "A container started with devices."})
			found.Way, found.HardLimit = way, way == engine.AttachCDI && hardLimit(facts)
			return found, nil, nil
		}
		found.Tried = append(found.Tried, engine.Attempt{Way: way, Text: failed.Message, Remedy: failed.Hint})
		if why == nil || why.Code == session.CodeAttachFailed && failed.Code != session.CodeAttachFailed {
			why = failed // a daemon in trouble says more than a way that nobody has set up
		}
	}
	found.Way = engine.AttachNone
	return found, why, nil
}

// excludes says why a way cannot work by the facts of the daemon, nil where it must be tried.
func excludes(facts *daemon.Facts, way engine.AttachWay, ids []string) *session.Error {
	switch {
	case way == engine.AttachRuntime && !slices.Contains(facts.Runtimes, nvidiaRuntime):
		return noRuntime.failure(nil)
	case way != engine.AttachCDI:
		return nil
	case len(facts.CDIDirs) == 0:
		return noCDI.failure(nil)
	case !facts.ListsDevices:
		return nil
	case len(facts.CDI) == 0:
		return noSpec.failure(nil)
	}
	for _, id := range ids {
		if !slices.Contains(facts.CDI, daemon.CDIKind+id) {
			failed := unknownDevice.failure(nil)
			failed.Message = fmt.Sprintf("The CDI specification does not name the device %s.", id)
			return failed
		}
	}
	return nil
}

// Failure recognises a failure to attach devices, nil for other errors. It makes the next use try the ways again.
func (d *Devices) Failure(err error) *session.Error {
	failed := failureOf(err)
	if failed != nil {
		d.forget()
	}
	return failed
}

func failureOf(err error) *session.Error {
	if err == nil {
		return nil
	}
	if reason := attachTexts.Of(daemon.Text(err)); reason != nil {
		return reason.failure(err)
	}
	return nil
}

// CheckGrants fails where a granted device is unknown: the session would run without it.
func CheckGrants(c engine.Container) error {
	for _, grant := range c.Grants {
		known := func(device gpu.Device) bool { return device.UUID == grant.Device && device.Vendor != "" }
		if !slices.ContainsFunc(c.Devices, known) {
			return session.NewError(session.CodeAttachFailed,
				fmt.Sprintf("The granted device %s is not on this machine any more.", grant.Device),
				"Check its driver, for example with `nvidia-smi`, and launch again.")
		}
	}
	return nil
}

// ids names granted devices of a vendor as the toolkit does: MIG instances by their own UUIDs, else the device.
func ids(c engine.Container, vendor gpu.Vendor) []string {
	var list []string
	add := func(id gpu.UUID) {
		if !slices.Contains(list, string(id)) {
			list = append(list, string(id))
		}
	}
	for _, device := range c.Devices {
		if device.Vendor != vendor {
			continue
		}
		whole := true
		for _, grant := range c.Grants {
			if grant.Device == device.UUID && grant.Instance != "" {
				add(grant.Instance)
				whole = false
			}
		}
		if whole {
			add(device.UUID)
		}
	}
	return list
}
