//go:build linux

package app_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/backend/store"
)

// finishedSessions is how many sessions have ended in the books of the benchmark.
const finishedSessions = 10_000

// BenchmarkWindowWithTenThousandFinishedSessions opens the real window again and
// again on a machine with a long past, and then the page of all that has ended.
// It reports medians in milliseconds: from the start of the program to the picture
// of the shell that comes first (start-ms), and from the opening of a page to that
// picture, to the shell itself, and to the first data: of the first page
// (picture-ms, shell-ms, data-ms) and of that of finished sessions (with finished-
// before), where the newest are shown until all have come (finished-all-ms).
func BenchmarkWindowWithTenThousandFinishedSessions(b *testing.B) {
	program, err := filepath.Abs(desktopProgram)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		b.Fatalf("%v: run make build first", err)
	}
	home := place.Home{Dir: b.TempDir()}
	fillBooks(b, home.Join("sim", "agent.db"))
	env := append(cleanEnv(), "LANG=C.UTF-8", "SLIPWAY_HOME="+home.Dir)
	start(b, exec.Command(program, "serve", "--engine", "sim"), env)
	waitFor(b, "the control plane to answer", func() bool {
		list := exec.Command(program, "ps")
		list.Env = env
		return list.Run() == nil
	})
	d := startDriver(b, env)
	b.Cleanup(d.report)
	took := map[string][]float64{}
	for b.Loop() {
		for unit, ms := range d.timeWindow(program) {
			took[unit] = append(took[unit], ms)
		}
	}
	b.ReportMetric(0, "ns/op")
	for unit, all := range took {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], unit)
	}
}

// timeWindow opens the window, then the page of all finished sessions in it, and
// closes it.
func (d *driver) timeWindow(program string) map[string]float64 {
	d.open(program, "--engine=sim")
	defer func() {
		if !d.t.Failed() {
			d.close()
		}
	}()
	first := d.shown()
	_, started := d.process()
	if err := d.script("location.assign('/sessions?state=finished')", nil); err != nil {
		d.t.Fatal(err)
	}
	d.waitScript("the page of finished sessions", `location.search === '?state=finished'`)
	d.waitScript("the number of finished sessions", fmt.Sprintf(`document.body.innerText.includes('%d')`,
		finishedSessions))
	all := d.shown()
	d.waitScript("a row of them", `document.querySelector('.ant-table-row')`)
	return map[string]float64{
		"start-ms": first.Origin + first.Picture - started, "picture-ms": first.Picture, "shell-ms": first.Shell,
		"data-ms":             first.Data,
		"finished-picture-ms": all.Picture, "finished-shell-ms": all.Shell, "finished-data-ms": all.Data,
		"finished-all-ms": all.All,
	}
}

// shownAt is when a page was opened and, in milliseconds after that, when its
// picture of the shell, its shell, its first data and all of it were on the screen.
type shownAt struct{ Origin, Picture, Shell, Data, All float64 }

// shown waits for a page to have noted them.
func (d *driver) shown() (at shownAt) {
	d.t.Helper()
	d.waitScript("the page's data",
		`performance.getEntriesByName('slipway:all-sessions').length && `+
			`performance.getEntriesByName('slipway:shell').length`)
	err := d.script(`const at = (name) => performance.getEntriesByName('slipway:' + name)[0].startTime;
return {origin: performance.timeOrigin, picture: at('picture'), shell: at('shell'), data: at('sessions'),
	all: at('all-sessions')}`, &at)
	if err != nil {
		d.t.Fatal(err)
	}
	return at
}

// fillBooks writes the records of sessions that have ended, one every minute.
func fillBooks(b *testing.B, path string) {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.Fatal(err)
	}
	books, err := store.Open(store.Config{Path: path})
	if err != nil {
		b.Fatal(err)
	}
	first := time.Now().Add(-24*time.Hour - finishedSessions*time.Minute).UTC()
	err = books.Update(func(tx *store.Tx) error {
		for i := range finishedSessions {
			one := finished(i, first.Add(time.Duration(i)*time.Minute))
			if err := tx.Create(&one, ""); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, books.Close()); err != nil {
		b.Fatal(err)
	}
}

// finished is a batch session that has ended well.
func finished(i int, began time.Time) session.Session {
	over, zero := began.Add(10*time.Minute), 0
	grants := session.Grants{CPUs: []int{0}, Memory: 1 << 30}
	return session.Session{
		ID: session.ID(fmt.Sprintf("past%08d", i)), Name: fmt.Sprintf("train-%05d", i*7919%finishedSessions),
		Agent: "local", Progress: session.Progress{Attempt: 1}, Allocation: session.Allocation{
			Grants: grants,
			Kernels: []session.Kernel{{Name: session.MainKernel, Hostname: session.MainKernel,
				Container: fmt.Sprintf("%064x", i), Status: session.Terminated, Grants: grants}},
		},
		Spec: session.Spec{Type: session.Batch, Image: fmt.Sprintf("python:3.%d", 9+i%5),
			Command: "python3 train.py --epochs 10",
			Env:     []session.EnvVar{{Name: "SEED", Value: strconv.Itoa(i)}}}.WithDefaults(),
		Status:    session.Terminated,
		End:       session.End{Result: session.ResultSuccess, Reason: session.ReasonFinished, ExitCode: &zero},
		Resolved:  session.Resolved{Priority: session.DefaultPriority},
		CreatedAt: began.Add(-2 * time.Second),
		Times:     session.Times{ScheduledAt: &began, StartedAt: &began, TerminatedAt: &over},
	}
}
