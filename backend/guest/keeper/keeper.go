// Package keeper keeps what the cells of a session's notebooks print while no page is connected to their kernels.
//
// A Jupyter server discards the output of a running cell once its page is closed, reloaded or cut off. The keeper is a
// program beside the server, which it does not change: it listens to the IOPub socket of each kernel, whose connection
// files are in the person's runtime folder, and has the server write what a notebook lacks. It does so late, so that a
// page that is still open never finds its file changed: when a page is about to read the notebook, once no page has
// been connected for ten minutes, and before the server is stopped. What has no cell of its own any more goes to a
// notebook beside it. A page that reads the notebook while a cell runs can ask for what it lacks of that run. The
// keeper needs no extension and runs as the session's user.
//
// Kernels with CurveZMQ are not listened to, and the keeper says so. What is kept is lost with the container. It is
// bounded for each cell, each kernel and all of them.
package keeper

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"slipway/backend/guest/link"
)

const (
	scanEvery    = 250 * time.Millisecond // for new kernels
	lookEvery    = time.Second            // for pages, while a cell runs
	seldom       = 30 * time.Second       // for pages, while a file may lack something
	lateAfter    = 10 * time.Minute       // without a page
	reloadLimit  = 500 * time.Millisecond // for the connection of a page that reloads to end
	reloadLook   = 50 * time.Millisecond
	maxKernels   = 100
	maxRecovered = 100
)

// Keeper keeps the output of the notebooks of one Jupyter server.
type Keeper struct {
	server server
	dirs   []string // where kernels' connection files may be

	writing sync.Mutex           // held while files are written; guards aside
	aside   map[string]*recovery // by the path of their notebook

	most int64        // bytes of the runs of all kernels
	size atomic.Int64 // bytes that they have

	mu      sync.Mutex // guards kernels
	kernels map[string]*kernel
}

// recovery is the notebook beside another one.
type recovery struct {
	path string
	runs runs
	size int // bytes of runs
}

// New returns the keeper of a Jupyter server on a port of the loopback, or on a unix socket.
func New(network, address string, env func(string) string) *Keeper {
	return &Keeper{server: server{network, address}, dirs: runtimeDirs(env), most: maxSession,
		kernels: map[string]*kernel{}, aside: map[string]*recovery{}}
}

// runtimeDirs are where jupyter_core's versions have runtime files.
func runtimeDirs(env func(string) string) []string {
	var dirs []string
	for _, dir := range []string{env("JUPYTER_RUNTIME_DIR"), under(env("JUPYTER_DATA_DIR"), "runtime"),
		under(env("XDG_RUNTIME_DIR"), "jupyter"), under(env("XDG_DATA_HOME"), "jupyter/runtime"),
		under(env("HOME"), ".local/share/jupyter/runtime")} {
		if dir != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func under(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// Run keeps output until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	var work sync.WaitGroup
	work.Go(func() { k.watchPages(ctx) })
	ticker := time.NewTicker(scanEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		for id, file := range k.files() {
			if one := k.begin(id, file); one != nil {
				work.Go(func() {
					one.leave(one.listen(ctx)) // what it printed is kept
				})
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
	work.Wait()
}

// files returns the connection files of kernels by their ids.
func (k *Keeper) files() map[string]string {
	found := map[string]string{}
	for _, dir := range k.dirs {
		entries, _ := os.ReadDir(dir) // it may not be there yet
		for _, entry := range entries {
			id, isKernel := strings.CutPrefix(strings.TrimSuffix(entry.Name(), ".json"), "kernel-")
			if isKernel && strings.HasSuffix(entry.Name(), ".json") {
				found[id] = filepath.Join(dir, entry.Name())
			}
		}
	}
	return found
}

// begin returns a kernel that nothing listens to, else nil.
func (k *Keeper) begin(id, file string) *kernel {
	k.mu.Lock()
	defer k.mu.Unlock()
	one := k.kernels[id]
	switch {
	case one != nil && one.back():
		return one
	case one != nil || len(k.kernels) >= maxKernels:
		return nil
	}
	one = &kernel{id: id, file: file, keeper: k, deaf: time.Now()}
	k.kernels[id] = one
	return one
}

// forget drops kernels that are gone and whose notebooks lack nothing, or that have none.
func (k *Keeper) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.kernels, func(_ string, one *kernel) bool {
		over := one.over()
		if over {
			one.release()
		}
		return over
	})
}

// makeRoom drops runs of all kernels while they take too much.
func (k *Keeper) makeRoom() {
	for k.size.Load() > k.most {
		var from *kernel
		var first *run
		for _, one := range k.all() {
			if r := one.first(); r != nil && (first == nil || r.before(first)) {
				from, first = one, r
			}
		}
		if from == nil {
			return
		}
		from.drop()
	}
}

func (k *Keeper) all() (list []*kernel) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, one := range k.kernels {
		list = append(list, one)
	}
	return list
}

// watchPages follows which kernels have pages, as long as that matters, and writes what none has fetched for long.
func (k *Keeper) watchPages(ctx context.Context) {
	alone := solitude{}
	var looked time.Time
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		now, list := time.Now(), k.all()
		prints := func(one *kernel) bool { return one.prints(now) }
		if !slices.ContainsFunc(list, prints) && (now.Sub(looked) < seldom ||
			!slices.ContainsFunc(list, (*kernel).unsettled)) {
			continue
		}
		looked = now
		if k.look(ctx) != nil {
			continue // the server may be busy, or not be there yet
		}
		for _, path := range alone.late(list, now) {
			_ = k.Write(ctx, path, false) // it is tried again, and the rest of a cell that runs comes later
		}
		k.forget()
	}
}

// solitude has the ids of kernels without a page whose notebooks lack something, and since when.
type solitude map[string]time.Time

// late returns the notebooks that have had no page for lateAfter, each once in that time.
func (s solitude) late(list []*kernel, now time.Time) (notebooks []string) {
	for _, one := range list {
		path, pages := one.place()
		if pages > 0 || path == "" || !one.unsettled() {
			delete(s, one.id)
		} else if since, known := s[one.id]; !known {
			s[one.id] = now
		} else if now.Sub(since) > lateAfter {
			notebooks = append(notebooks, path)
			s[one.id] = now
		}
	}
	return notebooks
}

// look asks the server which notebooks have kernels, and which of these have pages.
func (k *Keeper) look(ctx context.Context) error {
	found, err := k.server.opened(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, one := range k.all() {
		path, pages := "", 0
		for _, at := range found {
			if at.Kernel.ID == one.id && at.Type == "notebook" {
				path, pages = at.Path, at.Kernel.Pages
			}
		}
		one.seen(path, pages, now)
	}
	return nil
}

// unkept returns the notebooks whose output is not kept.
func (k *Keeper) unkept(ctx context.Context) ([]link.Unkept, error) {
	found, err := k.server.opened(ctx)
	now, files, list := time.Now(), k.files(), []link.Unkept{}
	for _, at := range found {
		k.mu.Lock()
		one := k.kernels[at.Kernel.ID]
		k.mu.Unlock()
		var why link.Why
		switch {
		case at.Type != "notebook":
		case one != nil:
			why = one.unheard(now)
		case files[at.Kernel.ID] == "":
			why = link.WhyUnreadable
		}
		if why != "" {
			list = append(list, link.Unkept{Notebook: at.Path, Why: why})
		}
	}
	return list, err
}

// Write has the server write what notebooks lack: the one with this path, or all if it is empty. Those with pages are
// left alone, unless the server is ending. The page that reads a notebook may be the one that had it open, whose
// connection ends a little later.
func (k *Keeper) Write(ctx context.Context, only string, ending bool) error {
	k.writing.Lock()
	defer k.writing.Unlock()
	var failures []error
	for until := time.Now().Add(reloadLimit); ; {
		if err := k.look(ctx); err != nil {
			return err
		}
		waits := false
		for _, one := range k.all() {
			path, pages := one.place()
			switch {
			case path == "" || only != "" && path != only || !one.unsettled():
			case pages > 0 && !ending:
				waits = only != ""
			default:
				if err := k.write(ctx, path, one); err != nil {
					failures = append(failures, fmt.Errorf("%s: %w", path, err))
				}
			}
		}
		if !waits || time.Now().After(until) {
			return errors.Join(failures...)
		}
		select {
		case <-time.After(reloadLook):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (k *Keeper) write(ctx context.Context, at string, of *kernel) error {
	file, err := k.server.read(ctx, at)
	if err != nil {
		of.lost(err)
		return err
	}
	of.mu.Lock()
	placed, homeless := place(file.Content, of.runs, file.Saved)
	aside := k.asideOf(at, homeless)
	beside := recovered(path.Base(at), aside.runs)
	for _, r := range slices.Concat(placed, homeless) {
		r.settled = r.done // else the rest of it comes later
	}
	of.mu.Unlock()
	unsettle := func(list runs) {
		of.mu.Lock()
		defer of.mu.Unlock()
		for _, r := range list {
			r.settled = false
		}
	}
	if len(homeless) > 0 {
		if err := k.writeAside(ctx, at, aside, beside); err != nil {
			unsettle(slices.Concat(placed, homeless))
			return err
		}
	}
	if len(placed) == 0 {
		return nil
	}
	saved, err := k.server.savedAt(ctx, at)
	if err == nil && !saved.Equal(file.Saved) {
		err = errors.New("the notebook was saved meanwhile")
	}
	if err == nil {
		err = k.server.write(ctx, at, file.Content)
	}
	if err != nil {
		unsettle(placed)
	}
	return err
}

// asideOf adds runs to those that are kept beside a notebook, or to a further one if there are many. The caller writes.
func (k *Keeper) asideOf(at string, more runs) *recovery {
	size := 0
	for _, one := range k.aside {
		size += one.size
	}
	one := k.aside[at]
	if size > maxKept || one != nil && len(one.runs) >= maxRecovered {
		k.aside = map[string]*recovery{}
		one = nil
	}
	if one == nil {
		one = &recovery{}
		if len(more) > 0 {
			k.aside[at] = one
		}
	}
	for _, r := range more {
		if !slices.Contains(one.runs, r) {
			one.runs = append(one.runs, r)
		}
	}
	one.size = one.runs.bytes()
	return one
}

func (k *Keeper) writeAside(ctx context.Context, at string, aside *recovery, beside fields) error {
	const most = 20
	stem := strings.TrimSuffix(at, ".ipynb") + "-recovered"
	for number := 2; aside.path == ""; number++ {
		_, err := k.server.savedAt(ctx, stem+".ipynb")
		switch {
		case errors.Is(err, errMissing):
			aside.path = stem + ".ipynb"
		case err != nil:
			return err
		case number > most:
			return errors.New("there are too many recovered notebooks")
		}
		if aside.path == "" {
			stem = fmt.Sprintf("%s-recovered-%d", strings.TrimSuffix(at, ".ipynb"), number)
		}
	}
	return k.server.write(ctx, aside.path, beside)
}
