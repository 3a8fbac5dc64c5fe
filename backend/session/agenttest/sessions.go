package agenttest

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// nobody is the id of no session.
const nobody session.ID = "zzzzzzzzzzzz"

func caseMachine(s *suite) {
	m := must(s, s.agent.Machine)
	for m.CPUs == 0 && s.ctx.Err() == nil { // its engine has not answered yet
		s.pause()
		m = must(s, s.agent.Machine)
	}
	if m.Agent == "" || m.CPUs < 1 || m.Memory < gpu.MiB || m.OS == "" || m.Arch == "" || m.Version == "" {
		s.Errorf("it says %+v", m)
	}
}

func (s *suite) preview(spec session.Spec, count int) session.Preview {
	return must(s, func(ctx context.Context) (session.Preview, error) { return s.agent.Preview(ctx, "", spec, count) })
}

func casePreview(s *suite) {
	good := s.spec(session.Spec{})
	p := s.preview(good, 1)
	if len(p.Errors) > 0 || p.Image == nil || p.Spec.Type == "" {
		s.Errorf("a good one: %+v", p)
	}
	bad := session.Spec{Image: "No Such/Image", Resources: session.Resources{CPU: -1, Memory: 1}}
	p = s.preview(bad, 1)
	fields := map[string]bool{}
	for _, e := range p.Errors {
		fields[e.Field] = e.Kind != "" && e.Message != ""
	}
	if !fields["image"] || len(fields) < 2 {
		s.Errorf("a bad one: %+v", p.Errors)
	}
	if p = s.preview(good, 3); len(p.Further) != 2 {
		s.Errorf("of three, the further ones: %+v", p.Further)
	}
}

// caseGone checks that everything missing that a launch names is reported at once.
func caseGone(s *suite) {
	gone := s.spec(session.Spec{Mounts: []session.Mount{{Folder: "no-such-folder"}, {Source: "/no/such/directory"}},
		Schedule: session.Schedule{After: []string{"no-such-session"}}})
	missing := func(fields []session.FieldError) map[string]session.Kind {
		told := map[string]session.Kind{}
		for _, e := range fields {
			if e.Message != "" {
				told[e.Field] = e.Kind
			}
		}
		return told
	}
	want := map[string]session.Kind{"mounts[0].folder": session.KindNotFound,
		"mounts[1].source": session.KindInvalid, "after[0]": session.KindNotFound}
	_, err := try(s, with(s.agent.Launch, session.LaunchRequest{Key: rand.Text(), Spec: gone}))
	if told := missing(session.AsError(err, session.CodeInvalid).Fields); !maps.Equal(told, want) {
		s.Errorf("a launch is refused with %v, want %v", told, want)
	}
	gone.Image = "sha256:" + strings.Repeat("0", 64)
	want["image"] = session.KindNotFound
	p := s.preview(gone, 1)
	if told := missing(p.Errors); !maps.Equal(told, want) {
		s.Errorf("a preview tells %v, want %v", told, want)
	}
}

func caseLife(s *suite) {
	launched := s.launch(session.Spec{Name: "life-" + suffix()})
	if launched.Status != session.Pending || launched.ID == "" || launched.Owner == "" || launched.Agent == "" {
		s.Errorf("a launch is answered with %+v", launched)
	}
	ran := s.awaitStatus(launched.ID, session.Running)
	if ran.StartedAt == nil || len(ran.Kernels) != 1 || ran.Kernels[0].Status != session.Running ||
		ran.Grants.Memory == 0 || ran.Revision <= launched.Revision {
		s.Errorf("it runs as %+v", ran)
	}
	s.terminate(launched.ID, false)
	ended := s.awaitEnd(launched.ID)
	if ended.Status != session.Terminated || ended.Reason != session.ReasonUser || ended.TerminatedAt == nil {
		s.Errorf("it ended as %+v", ended)
	}
	phases := must(s, with(s.agent.History, launched.ID))
	var names []session.PhaseName
	for i, p := range phases {
		names = append(names, p.Phase)
		if p.Session != launched.ID || p.Result != session.OutcomeSuccess || i > 0 &&
			p.CreatedAt.Before(phases[i-1].CreatedAt) {
			s.Errorf("phase %d is %+v", i, p)
		}
	}
	if len(names) != 4 || names[0] != session.PhaseSchedule || names[3] != session.PhaseTerminate {
		s.Errorf("its history is %v", names)
	}
}

func caseSetup(s *suite) {
	batch := func(setup, command string) session.Session {
		return s.awaitEnd(s.launch(session.Spec{Type: session.Batch, Command: command,
			Lifetime: session.Lifetime{Setup: setup}}).ID)
	}
	done := batch("echo set up > made", "cat made")
	log := s.readLog(done.ID, session.LogOptions{})
	if !strings.HasSuffix(log, "slipway: the setup is done\nset up\n") || done.Result != session.ResultSuccess {
		s.Errorf("it ended with %s and %q: %+v", done.Result, log, done.Error)
	}
	failed := batch("echo no such package; exit 7", "echo the command")
	log = s.readLog(failed.ID, session.LogOptions{})
	if failed.ExitCode == nil || *failed.ExitCode != 7 || strings.Contains(log, "the command") ||
		failed.Error == nil || !strings.Contains(failed.Error.Message, "code 7: no such package") {
		s.Errorf("it ended with %+v, %+v and %q", failed.ExitCode, failed.Error, log)
	}
	used := s.launch(session.Spec{Lifetime: session.Lifetime{Setup: "echo made beside > made; exit 3"}}).ID
	s.await(used, "warned", func(x session.Session) bool {
		return slices.ContainsFunc(x.Warnings, func(w session.Warning) bool {
			return strings.HasPrefix(w.Text, "The setup failed: ") && strings.Contains(w.Text, "code 3")
		})
	})
	if got := s.exec(used, nil, "cat", "made"); got.stdout != "made beside\n" {
		s.Errorf("beside it was made %+v", got)
	}
	s.terminate(used, true)
}

func caseSystem(s *suite) {
	folder := s.folder(session.FolderRequest{Name: "served-" + suffix()})
	launched := must(s, with(s.agent.Launch, session.LaunchRequest{Key: rand.Text(), Spec: session.Spec{
		Name: "system-" + suffix(), Type: session.System, Mounts: []session.Mount{{Folder: folder.Name}}}}))
	s.note(launched.ID)
	ran := s.awaitStatus(launched.ID, session.Running)
	if ran.Spec.Type != session.System || len(ran.Folders) != 1 || ran.Folders[0].Folder != folder.ID {
		s.Errorf("it runs as %+v", ran)
	}
	s.terminate(launched.ID, false)
	s.awaitEnd(launched.ID)
}

func caseKey(s *suite) {
	req := session.LaunchRequest{Key: rand.Text(), Launch: session.NewID(),
		Spec: s.spec(session.Spec{Name: "key-" + suffix(), Type: session.Batch, Command: "true"})}
	const callers = 8
	var ids [callers]session.ID
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			launched, err := try(s, with(s.agent.Launch, req))
			if err != nil {
				s.Error(err)
			}
			ids[i] = launched.ID
		})
	}
	all.Wait()
	s.note(ids[0])
	s.awaitEnd(ids[0])
	again := must(s, with(s.agent.Launch, req))
	if again.Launch != req.Launch {
		s.Errorf("it belongs to the launch %q, want %q", again.Launch, req.Launch)
	}
	found := 0
	for _, x := range must(s, with(s.agent.List, session.Filter{})) {
		if x.Name == req.Spec.Name {
			found++
		}
	}
	for _, id := range ids {
		if id != ids[0] || again.ID != ids[0] || found != 1 {
			s.Fatalf("one key launched %v, then %s; %d sessions have its name", ids, again.ID, found)
		}
	}
}

func caseRefused(s *suite) {
	wrong := session.LaunchRequest{Key: rand.Text(), Spec: session.Spec{Name: "-", Image: "No Such/Image"}}
	fields := refused(s, "a spec that is wrong", session.CodeInvalid, with(s.agent.Launch, wrong))
	if len(fields) < 2 || fields[0].Field == "" || fields[0].Message == "" {
		s.Errorf("its fields are %+v", fields)
	}
	first := s.launch(session.Spec{Name: "taken-" + suffix()})
	refused(s, "a name that is taken", session.CodeNameTaken,
		with(s.agent.Launch, session.LaunchRequest{Key: rand.Text(), Spec: s.spec(session.Spec{Name: first.Name})}))
	s.terminate(first.ID, true)
}

func caseUnknown(s *suite) {
	for name, call := range map[string]func(context.Context) error{
		"get":       failure(with(s.agent.Get, nobody)),
		"history":   failure(with(s.agent.History, nobody)),
		"rename":    failure(with2(s.agent.Rename, nobody, "other")),
		"tags":      failure(with2(s.agent.SetTags, nobody, nil)),
		"terminate": failure(with2(s.agent.Terminate, nobody, false)),
		"priority":  failure(with2(s.agent.SetPriority, nobody, 5)),
		"prefer":    func(ctx context.Context) error { return s.agent.Prefer(ctx, nobody, true) },
		"devices":   failure(with2(s.agent.SetAccelerator, nobody, gpu.Request{})),
		"keep":      failure(with2(s.agent.Keep, nobody, session.Duration(time.Hour))),
		"simulate":  failure(with2(s.agent.SimulateIdle, nobody, session.IdlePolicy{})),
		"logs":      failure(with2(s.agent.Logs, nobody, session.LogOptions{})),
		"terminals": failure(with(s.agent.ListTerminals, nobody)),
		"attach":    failure(with2(s.agent.AttachTerminal, nobody, session.AttachRequest{Terminal: "t1"})),
		"exec":      failure(with2(s.agent.Exec, nobody, session.ExecRequest{Command: []string{"true"}})),
		"apps":      failure(with(s.agent.ListApps, nobody)),
		"start":     failure(with2(s.agent.StartApp, nobody, session.AppRequest{App: "notebook"})),
		"stop":      func(ctx context.Context) error { return s.agent.StopApp(ctx, nobody, "notebook") },
		"host":      failure(with2(s.agent.SSHHost, nobody, "")),
		"ssh":       failure(with2(s.agent.DialSSH, nobody, session.SSHRequest{})),
		"dial":      failure(with2(s.agent.DialPort, nobody, 80)),
	} {
		err := s.void(call)
		if s.Records && session.CodeOf(err) == session.CodeAgentUnsupported {
			continue // a method that the fake does not have
		}
		want(s, name, err, session.DetailNotFound)
	}
}

func caseList(s *suite) {
	var ids []session.ID
	for range 3 {
		launched := s.launch(session.Spec{Type: session.Batch, Command: "true"})
		ids = append(ids, launched.ID)
		s.awaitEnd(launched.ID)
	}
	list := func(f session.Filter) []session.Session { return must(s, with(s.agent.List, f)) }
	newest := list(session.Filter{Finished: true, Limit: 3})
	if len(newest) != 3 || newest[0].ID != ids[2] || newest[1].ID != ids[1] || newest[2].ID != ids[0] {
		s.Errorf("the newest three of %v are %v", ids, idsOf(newest))
	}
	if second := list(session.Filter{Finished: true, Limit: 1, Offset: 1}); len(second) != 1 || second[0].ID != ids[1] {
		s.Errorf("the second is %v", idsOf(second))
	}
	for _, x := range list(session.Filter{Live: true}) {
		if x.Status.Terminal() {
			s.Errorf("%s is among the live and %s", x.ID, x.Status)
		}
	}
}

func idsOf(list []session.Session) []session.ID {
	var ids []session.ID
	for _, x := range list {
		ids = append(ids, x.ID)
	}
	return ids
}

func caseTags(s *suite) {
	launched := s.launch(session.Spec{})
	set := func(tags ...string) session.Session { return must(s, with2(s.agent.SetTags, launched.ID, tags)) }
	for range 2 { // the second time changes nothing
		if tagged := set("paper", " baseline ", "paper"); !slices.Equal(tagged.Tags, []string{"baseline", "paper"}) {
			s.Errorf("its tags are %q", tagged.Tags)
		}
	}
	refused(s, "a tag with a comma", session.DetailInvalid, with2(s.agent.SetTags, launched.ID, []string{"a,b"}))
	s.terminate(launched.ID, true)
	s.awaitEnd(launched.ID)
	set("old")
	ended := must(s, with(s.agent.Get, launched.ID))
	if !slices.Equal(ended.Tags, []string{"old"}) || ended.Status.Live() {
		s.Errorf("after its end it is %s with the tags %q", ended.Status, ended.Tags)
	}
	if tagged := set(); len(tagged.Tags) != 0 {
		s.Errorf("without tags it has %q", tagged.Tags)
	}
}

func caseRename(s *suite) {
	launched := s.launch(session.Spec{})
	name := "renamed-" + suffix()
	for range 2 { // the second time changes nothing
		if renamed := must(s, with2(s.agent.Rename, launched.ID, name)); renamed.Name != name {
			s.Errorf("it is called %q", renamed.Name)
		}
	}
	bad := refused(s, "a bad name", session.DetailInvalid, with2(s.agent.Rename, launched.ID, "no such name!"))
	if len(bad) != 1 {
		s.Errorf("its fields are %+v", bad)
	}
	s.terminate(launched.ID, true)
	s.awaitEnd(launched.ID)
}

func caseTerminateTwice(s *suite) {
	launched := s.launch(session.Spec{})
	s.terminate(launched.ID, true)
	s.terminate(launched.ID, true)
	ended := s.awaitEnd(launched.ID)
	if again := s.terminate(launched.ID, false); again.Status != ended.Status || again.Reason != ended.Reason ||
		!again.TerminatedAt.Equal(*ended.TerminatedAt) {
		s.Errorf("it ended as %+v, then as %+v", ended, again)
	}
}

func casePriority(s *suite) {
	later := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	waiting := s.launch(session.Spec{Type: session.Batch, Command: "true",
		Schedule: session.Schedule{NotBefore: &later}})
	raised := must(s, with2(s.agent.SetPriority, waiting.ID, 77))
	if raised.Priority != 77 || raised.Status != session.Pending {
		s.Errorf("it is %+v", raised)
	}
	refused(s, "a priority below all", session.DetailInvalid, with2(s.agent.SetPriority, waiting.ID, -1))
	refused(s, "a negative share", session.DetailInvalid,
		with2(s.agent.SetAccelerator, waiting.ID, gpu.Request{Shares: -1}))
	if same := must(s, with2(s.agent.SetAccelerator, waiting.ID, gpu.Request{})); same.Status != session.Pending {
		s.Errorf("it is %+v", same)
	}
	for _, on := range []bool{true, true, false, false} {
		s.ok(s.void(func(ctx context.Context) error { return s.agent.Prefer(ctx, waiting.ID, on) }))
	}
	found := s.await(waiting.ID, "explained", func(x session.Session) bool { return x.Wait != nil })
	if found.Wait.Message == "" || found.Wait.Code == "" {
		s.Errorf("it waits for %+v", found.Wait)
	}
	s.terminate(waiting.ID, false)
	if ended := s.awaitEnd(waiting.ID); ended.Status != session.Cancelled {
		s.Errorf("it ended as %s", ended.Status)
	}
}

func caseHandover(s *suite) {
	later := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	waits := session.Spec{Type: session.Batch, Command: "true", Schedule: session.Schedule{NotBefore: &later}}
	launch := session.LaunchRequest{Key: rand.Text(), Spec: s.spec(waits)}
	mine := must(s, with(s.agent.Launch, launch))
	known := func() []session.Session {
		return must(s, with(s.agent.List, session.Filter{Owner: mine.Owner, Key: launch.Key}))
	}
	if list := known(); len(list) != 1 || list[0].ID != mine.ID || list[0].Key != launch.Key {
		s.Errorf("the sessions of its key are %+v", list)
	}
	theirs, others := session.NewID(), session.NewID() // of another agent
	must(s, func(ctx context.Context) (int, error) { return 0, s.agent.Yield(ctx, mine.ID, theirs) })
	must(s, func(ctx context.Context) (int, error) { return 0, s.agent.Yield(ctx, mine.ID, theirs) })
	refused(s, "yielding to two", session.CodeSessionConflict,
		func(ctx context.Context) (int, error) { return 0, s.agent.Yield(ctx, mine.ID, others) })
	refused(s, "what was handed over", session.CodeSessionNotFound, with(s.agent.Get, mine.ID))
	refused(s, "the launch of what was handed over", session.CodeSessionConflict, with(s.agent.Launch, launch))
	if list := known(); len(list) != 0 {
		s.Errorf("after it was handed over the sessions of its key are %+v", list)
	}

	waits.NotBefore = nil
	held := must(s, with(s.agent.Accept, session.LaunchRequest{From: theirs, Key: launch.Key, Spec: s.spec(waits),
		Floats: &session.Floats{Group: "lab"}, Tags: []string{"a"}}))
	s.note(held.ID)
	if !held.Held || held.From != theirs || held.Status != session.Pending || held.Floats == nil ||
		held.Floats.Group != "lab" || !slices.Equal(held.Tags, []string{"a"}) {
		s.Errorf("it was accepted as %+v", held)
	}
	if again := must(s, with(s.agent.Get, held.ID)); again.Status != session.Pending || !again.Held {
		s.Errorf("while it is held it is %+v", again)
	}
	for range 2 {
		if released := must(s, with(s.agent.Release, held.ID)); released.Held {
			s.Errorf("it was released as %+v", released)
		}
	}
	s.terminate(held.ID, true)
}

func caseKeep(s *suite) {
	id := s.running()
	refused(s, "the priority of what runs", session.CodeSessionConflict, with2(s.agent.SetPriority, id, 3))
	refused(s, "the devices of what runs", session.CodeSessionConflict,
		with2(s.agent.SetAccelerator, id, gpu.Request{}))
	// Less than the time limit of a cluster's job, which only its administrator may extend.
	kept := must(s, with2(s.agent.Keep, id, session.Duration(30*time.Minute)))
	if kept.KeepUntil == nil || time.Until(*kept.KeepUntil) < 25*time.Minute {
		s.Errorf("it is kept until %v", kept.KeepUntil)
	}
	for _, wrong := range []time.Duration{59 * time.Second, 31 * 24 * time.Hour} {
		refused(s, "to keep it for "+wrong.String(), session.CodeSessionInvalid,
			with2(s.agent.Keep, id, session.Duration(wrong)))
	}
	kept = must(s, with2(s.agent.Keep, id, 0))
	if kept.KeepUntil != nil {
		s.Errorf("it is kept until %v", kept.KeepUntil)
	}
	sim := must(s, with2(s.agent.SimulateIdle, id, session.IdlePolicy{Lifetime: session.Duration(time.Hour)}))
	if sim.Ended || sim.Message == "" {
		s.Errorf("simulated: %+v", sim)
	}
}

// suffix makes a name unique.
func suffix() string { return string(session.NewID())[:8] }
