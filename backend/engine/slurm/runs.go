package slurm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/sys/atomicwriter"

	"slipway/backend/engine"
	"slipway/backend/guest/node"
	"slipway/backend/session"
	"slipway/backend/slurm"
)

// runs are the runs in the folder of an engine.
type runs struct {
	dir    string
	arrays string // folder of what the tasks of an array have in common
	binary func(arch string) ([]byte, error)

	mu     sync.Mutex // guards everything below
	byName map[slurm.JobName]*run
	guest  string // path of the guest's binary; empty: not written yet
}

// run is one attempt of a session.
type run struct {
	name slurm.JobName // of its first job; see eachTry
	dir  string
	turn chan struct{} // holds a token while its folder is written or its job is submitted
	// the engine was asked to end it
	stopping atomic.Bool

	mu     sync.Mutex // guards record, which is replaced and not changed
	record record
}

// record is what an engine stores of a run, in [recordFile].
type record struct {
	Image   string        `json:"image"` // its id
	Request slurm.Request `json:"request"`
	Kernels []kernel      `json:"kernels"`         // the main one first
	Batch   bool          `json:"batch,omitempty"` // the main one ends with its command
	Job     slurm.JobID   `json:"job,omitempty"`   // 0: none is known; of a task the array
	Task    int           `json:"task,omitempty"`  // its index if Request is for an array
	// Submitted is when a job was last asked for or made: there may be one though Job is not known. Zero: never.
	Submitted time.Time `json:"submitted,omitzero"`
}

// kernel is one kernel of a run.
type kernel struct {
	Kernel  string            `json:"kernel"`
	Name    string            `json:"name"` // of its container
	Labels  map[string]string `json:"labels"`
	Created time.Time         `json:"created,omitzero"` // when Create was called; zero: it was not
}

const (
	recordFile = "run.json"
	scriptFile = "job.sh"
	guestFile  = "guest"
	jobLog     = "job.log"
)

func openRuns(config Config) (*runs, error) {
	rs := &runs{dir: filepath.Join(config.Dir, "runs"), arrays: filepath.Join(config.Dir, "arrays"),
		binary: config.Guest, byName: map[slurm.JobName]*run{}}
	if err := errors.Join(os.MkdirAll(rs.dir, 0o700), os.MkdirAll(rs.arrays, 0o700)); err != nil {
		return nil, fileFailure("its folder", err)
	}
	entries, err := os.ReadDir(rs.dir)
	if err != nil {
		return nil, fileFailure("its folder", err)
	}
	for _, entry := range entries {
		name := slurm.JobName(jobPrefix + entry.Name())
		if _, _, ok := slurm.ParseJobName(name); !ok {
			continue
		}
		r := rs.make(name)
		data, err := os.ReadFile(filepath.Join(r.dir, recordFile))
		if err == nil {
			err = json.Unmarshal(data, &r.record)
		}
		if err != nil { // it was not finished, so it has no job
			if err := os.RemoveAll(r.dir); err != nil {
				config.Log.Warn("an unfinished run stays", "run", entry.Name(), "err", err)
			}
			continue
		}
		rs.byName[name] = r
	}
	if err := rs.sweepArrays(); err != nil {
		config.Log.Warn("files of arrays stay", "err", err)
	}
	return rs, nil
}

const jobPrefix = "slipway-"

func (rs *runs) make(name slurm.JobName) *run {
	return &run{name: name, dir: filepath.Join(rs.dir, strings.TrimPrefix(string(name), jobPrefix)),
		turn: make(chan struct{}, 1)}
}

// take returns the run of a job's name, made if there is none, and waits for the turn to change it. give ends the turn.
func (rs *runs) take(ctx context.Context, name slurm.JobName) (*run, error) {
	for {
		rs.mu.Lock()
		r := rs.byName[name]
		if r == nil {
			r = rs.make(name)
			rs.byName[name] = r
		}
		rs.mu.Unlock()
		select {
		case r.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ended(ctx)
		}
		rs.mu.Lock()
		current := rs.byName[name] == r
		rs.mu.Unlock()
		if current { // else it was removed meanwhile
			return r, nil
		}
		<-r.turn
	}
}

// give ends a turn. A run of which nothing was stored goes.
func (rs *runs) give(r *run) {
	rs.mu.Lock()
	if rs.byName[r.name] == r && len(r.now().Kernels) == 0 {
		delete(rs.byName, r.name)
	}
	rs.mu.Unlock()
	<-r.turn
}

// named returns the run of an attempt, nil if there is none.
func (rs *runs) named(name slurm.JobName) *run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.byName[name]; r != nil && len(r.now().Kernels) > 0 {
		return r
	}
	return nil
}

// find returns the run and kernel of a container, or engine_read_not-found.
func (rs *runs) find(id string) (*run, kernel, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if name, _, ok := parseName(id); ok {
		if r := rs.byName[name]; r != nil {
			for _, k := range r.now().Kernels {
				if k.Name == id && !k.Created.IsZero() {
					return r, k, nil
				}
			}
		}
	}
	return nil, kernel{}, session.NewError(session.CodeNoContainer, "There is no container "+id+".",
		"It was removed. Launch again.")
}

// parseName reads the name of a container, slipway-<session>-<kernel>-<attempt>.
func parseName(container string) (name slurm.JobName, kernel string, ok bool) {
	parts := strings.Split(container, "-")
	if len(parts) != 4 || !session.ValidKernel(parts[2]) {
		return "", "", false
	}
	name = slurm.JobName(strings.Join([]string{parts[0], parts[1], parts[3]}, "-"))
	id, _, ok := slurm.ParseJobName(name)
	return name, parts[2], ok && session.ValidID(string(id))
}

// all returns the runs in the order of their names.
func (rs *runs) all() []*run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	list := make([]*run, 0, len(rs.byName))
	for _, name := range slices.Sorted(maps.Keys(rs.byName)) {
		list = append(list, rs.byName[name])
	}
	return list
}

// using returns the names of the containers of runs with an image.
func (rs *runs) using(image string) (names []string) {
	for _, r := range rs.all() {
		if now := r.now(); now.Image == image {
			for _, k := range now.Kernels {
				names = append(names, k.Name)
			}
		}
	}
	return names
}

func (r *run) now() record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.record
}

// keep stores the record of a run. The caller has its turn.
func (r *run) keep(now record) error {
	data, err := json.Marshal(now)
	if err == nil {
		err = engine.ReplaceFile(filepath.Join(r.dir, recordFile), data)
	}
	if err != nil {
		return fileFailure("the files of "+string(r.name), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record = now
	return nil
}

// remove removes the folder of a run, whose job is over. The caller has its turn, with which the run goes.
func (rs *runs) remove(r *run) error {
	if err := os.RemoveAll(r.dir); err != nil {
		return fileFailure("the files of "+string(r.name), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record = record{}
	return nil
}

// write writes what the job reads. The caller has the turn of the run. guests are those of its kernels.
func (rs *runs) write(r *run, spec node.Spec, guests map[string]engine.GuestConfig) error {
	failed := func(err error) error { return fileFailure("the files of "+string(r.name), err) }
	program, err := rs.program()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return failed(err)
	}
	if err := engine.LinkFile(program, filepath.Join(r.dir, guestFile), 0o700); err != nil {
		return failed(err)
	}
	for name, config := range guests {
		data, err := json.Marshal(config)
		if err == nil {
			err = engine.ReplaceFile(node.GuestFile(r.dir, name), data)
		}
		if err != nil {
			return failed(err)
		}
	}
	data, err := json.Marshal(spec)
	if err == nil {
		err = engine.ReplaceFile(filepath.Join(r.dir, node.SpecFile), data)
	}
	if err == nil {
		err = atomicwriter.WriteFile(filepath.Join(r.dir, scriptFile), script(r.dir, len(spec.Kernels)), 0o700)
	}
	if err != nil {
		return failed(err)
	}
	return nil
}

func script(dir string, kernels int) []byte { return []byte("#!/bin/sh\n" + call(dir, kernels)) }

// call is what Slurm runs on the first node of a job: the guest's program there, or by srun on each node.
func call(dir string, kernels int) string {
	line := quote(filepath.Join(dir, guestFile)) + " node " + quote(dir)
	if kernels > 1 {
		// Without --unbuffered it passes on whole lines only, and without --export it has no PATH.
		line = "srun --kill-on-bad-exit=1 --unbuffered --export=ALL " + line
	}
	return "exec " + line + "\n"
}

// quote is a word for a shell.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// program returns the path of the guest's binary, which it writes if necessary. Runs have links to it, so that one of
// an older version stays as long as a job uses it.
func (rs *runs) program() (string, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if _, err := os.Stat(rs.guest); rs.guest != "" && err == nil {
		return rs.guest, nil
	}
	data, err := rs.binary(runtime.GOARCH)
	if err != nil {
		return "", session.WrapError(err, session.CodeEngineUnsupported,
			"This Slipway has no guest for "+runtime.GOARCH+" nodes.",
			"Install a release of Slipway on the login node.")
	}
	sum := sha256.Sum256(data)
	dir := filepath.Join(filepath.Dir(rs.dir), "guest")
	path := filepath.Join(dir, "slipway-guest-"+hex.EncodeToString(sum[:6]))
	if have, err := os.Stat(path); err != nil || have.Size() != int64(len(data)) {
		// Earlier versions go. Runs have them by another name.
		err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700))
		if err == nil {
			err = atomicwriter.WriteFile(path, data, 0o700)
		}
		if err != nil {
			return "", fileFailure("the guest", err)
		}
	}
	rs.guest = path
	return path, nil
}
