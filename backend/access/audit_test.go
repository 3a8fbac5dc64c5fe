package access

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
)

func TestHostileUserErasesNothingOfTheAudit(t *testing.T) {
	for name, refuse := range map[string]bool{"what is refused": true, "what they may": false} {
		t.Run(name, func(t *testing.T) {
			at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			audit, err := OpenAudit(filepath.Join(t.TempDir(), "audit.jsonl"), func() time.Time { return at },
				slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer audit.Close()
			audit.Note(user("ann"), Act{Method: "Terminate", Session: "annsfirstone"})
			audit.Note(Identity{Owner: "boss", Role: session.RoleAdmin}, Act{Method: "Pair", Target: "eve"})
			for i := range 80_000 {
				at = at.Add(10 * time.Millisecond)
				act := Act{Method: "Rename", Session: session.NewID(),
					Target: fmt.Sprint(strings.Repeat("x", targetMost-8), i)}
				if refuse {
					act.Err = session.NoSession(act.Session)
				}
				audit.Note(user("eve"), act)
			}
			entries, err := audit.Read(session.AuditQuery{Limit: 500_000})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []Entry{{Owner: "ann", Method: "Terminate"}, {Owner: "boss", Method: "Pair"}} {
				if !slices.ContainsFunc(entries, func(e Entry) bool {
					return e.Owner == want.Owner &&
						e.Method == want.Method
				}) {
					t.Errorf("%s of %s is erased", want.Method, want.Owner)
				}
			}
			t.Logf("%d entries", len(entries))
		})
	}
}

// shrink has every line put the file before it aside.
func shrink(audit *Audit) {
	for _, one := range audit.logs {
		one.file.Most = 1
	}
}

func TestAuditIsCappedPrivateAndSurvivesTornLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(path, []byte(`{"method":"Torn","own`+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	audit, err := OpenAudit(path, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer audit.Close()
	for range 3 {
		audit.Note(user("bob"), Act{Method: "DialPort", Session: "s", Target: "8888"})
	}
	audit.Note(user("bob"), Act{Method: "Rename", Target: strings.Repeat("x", 10_000)})
	if entries, err := audit.Read(session.AuditQuery{Limit: 10}); err != nil || len(entries) != 3 ||
		len(entries[2].Target) > targetMost+4 || entries[1].Method != "DialPort" || entries[1].Count != 2 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	shrink(audit)
	for i := range 7 {
		audit.Note(user("bob"), Act{Method: "Terminate", Session: session.ID(fmt.Sprint(i))})
		audit.Note(user("bob"), Act{Method: "SetLimit", Target: fmt.Sprint(i), Security: true})
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != securityFiles {
		t.Errorf("%v, %v", files, err)
	}
	theirs, err := filepath.Glob(filepath.Join(audit.people(), "*"))
	if files = append(files, theirs...); err != nil || len(theirs) != personFiles {
		t.Errorf("%v, %v", theirs, err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
}

func TestAuditIsReadInPages(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	// of a clock that stands still
	audit, err := OpenAudit(path, func() time.Time { return at }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer audit.Close()
	for i := range 40 { // in the log of security events over several files
		act := Act{Method: "ReadFile", Session: session.NewID(), Target: fmt.Sprintf("/data/%d.csv", i),
			Security: i%5 == 0}
		audit.of(securityLog).file.Most = 600
		if i%4 == 0 {
			// or it would be counted only
			act.Err = &session.Error{Code: session.Code(fmt.Sprint("file_use_failed-", i))}
		}
		audit.Note(user([]string{"ann", "bob"}[i%2]), act)
	}
	pages := func(asked session.AuditQuery) (targets []string, count int) {
		for ; count < 50; count++ {
			page, err := audit.Read(asked)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range slices.Backward(page) {
				targets = append(targets, e.Target)
			}
			if len(page) < asked.Limit {
				break
			}
			asked.Before = page[0].At
		}
		return targets, count + 1
	}
	if all, count := pages(session.AuditQuery{Limit: 7}); count != 6 || len(all) != 40 || all[0] != "/data/39.csv" ||
		all[39] != "/data/0.csv" || len(slices.Compact(slices.Sorted(slices.Values(all)))) != 40 {
		t.Errorf("%d pages: %v", count, all)
	}
	if anns, _ := pages(session.AuditQuery{Limit: 3, Owner: "ann"}); len(anns) != 20 || anns[0] != "/data/38.csv" {
		t.Errorf("ann's: %v", anns)
	}
	if failed, _ := pages(session.AuditQuery{Limit: 3, Failed: true, Text: "READ /data/1"}); !slices.Equal(failed,
		[]string{"/data/16.csv", "/data/12.csv"}) {
		t.Errorf("failed: %v", failed)
	}
	if gone, err := audit.Read(session.AuditQuery{Limit: 3, Before: at.Add(-time.Hour)}); err != nil || len(gone) != 0 {
		t.Errorf("before what is not there: %v, %v", gone, err)
	}
}

func TestWhatRepeatsIsCounted(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	now := func() time.Time { return at }
	audit, err := OpenAudit(path, now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	refused := Act{Method: "Get", Err: session.NoSession("nowhere")}
	count := func(asked session.AuditQuery) (lines, acts int) {
		t.Helper()
		entries, err := audit.Read(asked)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			acts += max(1, e.Count)
		}
		return len(entries), acts
	}
	for i := range 100 {
		refused.Session = session.NewID()
		audit.Note(user("eve"), refused)
		audit.Note(user("ann"), Act{Method: "Rename", Session: "one", Target: fmt.Sprint("name-", i)})
		audit.Note(Identity{From: fmt.Sprint("10.0.0.9:", 40_000+i), Client: fmt.Sprint("key ", i)},
			Act{Method: "Connect", Stranger: true, Security: true, Err: session.NoSession("x")})
	}
	if lines, acts := count(session.AuditQuery{Limit: 500, Owner: "eve"}); lines != 2 || acts != 100 {
		t.Errorf("%d refused calls are %d lines", acts, lines)
	}
	if lines, acts := count(session.AuditQuery{Limit: 500, Owner: "ann"}); lines != 100 || acts != 100 {
		t.Errorf("%d different acts are %d lines", acts, lines)
	}
	if lines, acts := count(session.AuditQuery{Limit: 500, Security: true}); lines != 2 || acts != 100 {
		t.Errorf("%d refused connections from one address are %d lines", acts, lines)
	}
	at = at.Add(30 * time.Second)
	audit.Note(user("eve"), refused)
	if lines, acts := count(session.AuditQuery{Limit: 500, Owner: "eve"}); lines != 3 || acts != 101 {
		t.Errorf("%d refused calls are %d lines", acts, lines)
	}
	at = at.Add(time.Minute)
	audit.Note(user("eve"), refused)
	audit.Note(user("eve"), refused)
	if err := audit.Close(); err != nil {
		t.Fatal(err)
	}
	if audit, err = OpenAudit(path, now, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if lines, acts := count(session.AuditQuery{Limit: 500, Owner: "eve"}); lines != 5 || acts != 103 {
		t.Errorf("after a restart %d refused calls are %d lines", acts, lines)
	}
}

func TestStrangersEraseNoSecurityEvents(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	audit, err := OpenAudit(filepath.Join(t.TempDir(), "audit.jsonl"), func() time.Time { return at },
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	audit.Note(Identity{From: "10.0.0.9:1"}, Act{Method: "TryCode", Security: true, Err: session.NoSession("x")})
	for i := range 40_000 {
		audit.Note(Identity{From: fmt.Sprintf("[2001:db8::%x]:443", i), Client: strings.Repeat("k", 52)},
			Act{Method: "Connect", Stranger: true, Security: true, Err: session.NoSession("x")})
	}
	entries, err := audit.Read(session.AuditQuery{Limit: 100_000, Security: true})
	if err != nil || len(entries) == 0 || entries[0].Method != "TryCode" || len(entries) >= 40_000 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}
