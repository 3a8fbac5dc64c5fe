package slurm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/atomicwriter"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/backend/slurm"
)

// Batch sessions that were launched together and ask for the same are the tasks of one array. Each is a run like any
// other: its record says of which array it is which task, and its job is that task. What the tasks have in common is in
// arrays/ of [Config.Dir], by the name of the array, until its last run goes: the script, which is written when all
// runs are, so that an array without it was never submitted, the mark of [slurm.Client.Submit], and what Slurm writes.

// arrays writes and submits arrays for a [Planner].
type arrays struct{ *Engine }

// maxTasks is the most tasks of an array, which is Slurm's own default.
const maxTasks = 1000

// jobKey identifies a job in what Slurm says: the tasks of an array have one name. Task is 0 for other jobs.
type jobKey struct {
	name slurm.JobName
	task int
}

func (k jobKey) String() string { return fmt.Sprintf("%s[%d]", k.name, k.task) }

func (r record) key() jobKey { return jobKey{r.Request.Name, r.Task} }

// named is what Slurm's commands call the job of a run.
func (r record) named() slurm.Named {
	if r.Request.Array > 0 {
		return slurm.TaskID{Array: r.Job, Task: r.Task}
	}
	return r.Job
}

// namedBy is what Slurm's commands call a job.
func namedBy(job slurm.Job) slurm.Named {
	if job.Array != 0 {
		return slurm.TaskID{Array: job.Array, Task: job.Task}
	}
	return job.ID
}

// set is what is known of sessions that were launched together and have no job yet.
type set struct {
	count int
	since time.Time // when there were so many first
	alone bool      // each gets a job of its own, because they got no array
}

// gatherTime is how long sessions wait for others that are launched together with them.
const gatherTime = 2 * time.Second

// arrayed reports whether a session may be a task of an array. Callers hold mu.
func (p *Planner) arrayed(w engine.Wanted) bool {
	s := w.Session
	return s.Launch != "" && s.Spec.Type == session.Batch && len(w.Kernels) == 1 && !p.sets[s.Launch].alone
}

// gather returns which sessions without a job are to be submitted now, and when the others may be: those that may be
// tasks of an array wait until no more of their launch have come for a while.
func (p *Planner) gather(missing []engine.Wanted) (ready []engine.Wanted, next time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, counts := p.engine.config.Clock.Now(), map[session.ID]int{}
	for _, w := range missing {
		counts[w.Session.Launch]++
	}
	for id := range p.sets {
		if counts[id] == 0 {
			delete(p.sets, id)
		}
	}
	for _, w := range missing {
		id := w.Session.Launch
		if !p.arrayed(w) {
			ready = append(ready, w)
			continue
		}
		if p.sets[id].count != counts[id] {
			p.sets[id] = set{count: counts[id], since: now}
		}
		if at := p.sets[id].since.Add(gatherTime); at.After(now) {
			next = at
		} else {
			ready = append(ready, w)
		}
	}
	return ready, next
}

// submitSome submits one run, or several as an array. It reports whether that failed and has to be tried again. Where
// Slurm refuses an array, each session asks by itself, and gets an answer of its own.
func (p *Planner) submitSome(ctx context.Context, together []engine.Wanted) (again bool) {
	e, a, first := p.engine, arrays{p.engine}, together[0]
	array, err := a.of(nameOf(first))
	switch {
	case err != nil:
	case len(together) > 1:
		err = a.launchAll(ctx, together)
	case array != "":
		err = a.submit(ctx, array)
	default:
		return p.submitted(nameOf(first), e.launch(ctx, nameOf(first), first))
	}
	if refuses(err) {
		e.config.Log.Warn("sessions are no array", "launch", first.Session.Launch, "err", err)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sets[first.Session.Launch] = set{alone: true}
		return false
	}
	for _, w := range together {
		again = p.submitted(nameOf(w), err) || again
	}
	return again
}

// of returns the array of a run that has no job yet; empty: there is no such array, or it was never submitted.
func (a arrays) of(run slurm.JobName) (slurm.JobName, error) {
	r := a.runs.named(run)
	if r == nil || r.now().Request.Array == 0 {
		return "", nil
	}
	now := r.now()
	_, err := os.Stat(now.Request.Script)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fileFailure("the files of "+string(run), err)
	}
	return now.Request.Name, nil
}

// launchAll writes the runs of sessions, none of which has one, and submits them as an array. Sessions that ask for
// something else than the first are left out.
func (a arrays) launchAll(ctx context.Context, together []engine.Wanted) error {
	terms, err := a.termsFor(ctx, together[0])
	if err != nil {
		return err
	}
	together = slices.DeleteFunc(slices.Clone(together), func(w engine.Wanted) bool {
		other, err := a.termsFor(ctx, w)
		return err != nil || !reflect.DeepEqual(other, terms)
	})
	if len(together) == 1 {
		return a.launch(ctx, nameOf(together[0]), together[0])
	}
	id, attempt := together[0].Session.ID, together[0].Session.Attempt
	array := a.runs.jobName(a.jobs.view(), id, attempt)
	request := slurm.Request{Name: array, Comment: a.comment(id, attempt), Target: terms.Target, Time: terms.Time,
		Nodes: 1, Nice: terms.Nice, Extra: terms.Extra, Each: terms.Each, Array: len(together), Dir: a.runs.arrays,
		Script: a.runs.arrayFile(array, ".sh"), Log: a.runs.arrayFile(array, ".log")}
	var names []string
	for task, w := range together {
		r, err := a.enroll(ctx, w, terms, request, task)
		if err != nil {
			return errors.Join(err, a.dismiss(ctx, array))
		}
		names = append(names, filepath.Base(r.dir))
	}
	if err := atomicwriter.WriteFile(request.Script, arrayScript(a.runs.dir, array, names), 0o700); err != nil {
		return errors.Join(fileFailure("the files of an array", err), a.dismiss(ctx, array))
	}
	return a.submit(ctx, array)
}

// enroll writes the run of a session as a task of an array that is not submitted yet.
func (a arrays) enroll(ctx context.Context, w engine.Wanted, terms Terms, request slurm.Request, task int) (*run,
	error) {
	if err := validate(w.Kernels[0]); err != nil {
		return nil, err
	}
	r, err := a.runs.take(ctx, nameOf(w))
	if err != nil {
		return nil, err
	}
	defer a.runs.give(r)
	now, err := a.prepare(ctx, r, w.Kernels, terms)
	if err == nil {
		now.Request, now.Task = request, task
		err = os.WriteFile(filepath.Join(r.dir, string(request.Name)+taskEnd), nil, 0o600)
	}
	if err == nil {
		err = r.keep(now)
	}
	if err != nil {
		return nil, errors.Join(err, a.runs.remove(r))
	}
	return r, nil
}

// taskEnd ends the name of the file in the folder of a run that says of which array it is a task. The folder of a
// session that was taken back and submitted again meanwhile has none, so that a late task leaves it alone.
const taskEnd = ".task"

// arrayScript is what Slurm runs for each task of an array: the guest's program for the run of that index.
func arrayScript(dir string, array slurm.JobName, runs []string) []byte {
	var cases strings.Builder
	for task, run := range runs {
		fmt.Fprintf(&cases, "%d) run=$dir/%s ;;\n", task, run)
	}
	return fmt.Appendf(nil, "#!/bin/sh\ndir=%s\ncase $SLURM_ARRAY_TASK_ID in\n%s*) exit 1 ;;\nesac\n"+
		"[ -e \"$run/%s%s\" ] || exit 0\nexec \"$run/%s\" node \"$run\" >>\"$run/%s\" 2>&1\n",
		quote(dir), &cases, array, taskEnd, guestFile, jobLog)
}

// submit submits an array whose runs are written, unless it has been. It fails with engine_start_failed if Slurm
// refuses it, and takes its runs back then.
func (a arrays) submit(ctx context.Context, array slurm.JobName) error {
	members, give, err := a.members(ctx, array)
	defer give()
	if err != nil || len(members) == 0 {
		return err
	}
	job := slurm.JobID(0)
	for _, r := range members { // one that was told, before this program was killed
		job = max(job, r.now().Job)
	}
	began := a.config.Clock.Now().UTC()
	if err := tell(members, job, began); err != nil {
		return err
	}
	if job == 0 {
		job, err = a.config.Commands.Submit(ctx, members[0].now().Request)
	}
	if session.CodeOf(err) == session.CodeEngineInvalid {
		said := session.AsError(err, session.CodeEngineInvalid)
		err = session.WrapError(err, session.CodeStartFailed, said.Message, said.Hint)
		for _, r := range members {
			err = errors.Join(err, a.discard(r))
		}
		return err
	}
	if err != nil {
		return failure(ctx, err)
	}
	a.jobs.poller.Wake()
	return tell(members, job, a.config.Clock.Now().UTC())
}

// tell stores that the runs of an array were submitted, and as what. The caller has their turns.
func tell(members []*run, job slurm.JobID, at time.Time) error {
	for _, r := range members {
		now := r.now()
		if now.Job != 0 {
			continue
		}
		now.Job, now.Submitted = job, at
		if err := r.keep(now); err != nil {
			return err
		}
	}
	return nil
}

// members returns the runs of an array and takes their turns, which give ends.
func (a arrays) members(ctx context.Context, array slurm.JobName) (members []*run, give func(), err error) {
	give = func() {
		for _, r := range members {
			a.runs.give(r)
		}
	}
	for _, name := range a.runs.of(array) {
		r, err := a.runs.take(ctx, name)
		if err != nil {
			return members, give, err
		}
		if members = append(members, r); r.now().Request.Name != array { // taken back meanwhile
			members = members[:len(members)-1]
			a.runs.give(r)
		}
	}
	return members, give, nil
}

// dismiss removes the runs of an array that was not submitted.
func (a arrays) dismiss(ctx context.Context, array slurm.JobName) error {
	members, give, err := a.members(ctx, array)
	defer give()
	for _, r := range members {
		err = errors.Join(err, a.discard(r))
	}
	return err
}

// of returns the names of the runs of an array.
func (rs *runs) of(array slurm.JobName) (names []slurm.JobName) {
	for _, r := range rs.all() {
		if now := r.now(); now.Request.Array > 0 && now.Request.Name == array {
			names = append(names, r.name)
		}
	}
	return names
}

func (rs *runs) arrayFile(array slurm.JobName, end string) string {
	return filepath.Join(rs.arrays, string(array)+end)
}

// dropArray removes what the tasks of an array have in common, if a run is its last one.
func (rs *runs) dropArray(r *run) error {
	now := r.now()
	if now.Request.Array == 0 || !slices.Equal(rs.of(now.Request.Name), []slurm.JobName{r.name}) {
		return nil
	}
	return rs.removeArrays(func(name slurm.JobName) bool { return name == now.Request.Name })
}

// sweepArrays removes what arrays without runs have left.
func (rs *runs) sweepArrays() error {
	return rs.removeArrays(func(name slurm.JobName) bool { return len(rs.of(name)) == 0 })
}

func (rs *runs) removeArrays(which func(slurm.JobName) bool) error {
	entries, err := os.ReadDir(rs.arrays)
	for _, entry := range entries {
		if name, _, _ := strings.Cut(entry.Name(), "."); which(slurm.JobName(name)) {
			err = errors.Join(err, os.Remove(filepath.Join(rs.arrays, entry.Name())))
		}
	}
	if err != nil {
		return fileFailure("the files of an array", err)
	}
	return nil
}
