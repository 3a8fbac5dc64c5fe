package store

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"slipway/backend/session"
	"slipway/gpu"
)

// fixture opens a copy of a database as it was released.
func fixture(t *testing.T, name string) *Store {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "agent.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, path, nil)
}

// TestDatabaseOfSchema1Opens opens a database as schema 1 was released, which
// is never written anew.
func TestDatabaseOfSchema1Opens(t *testing.T) {
	s := fixture(t, "schema1.db")
	live, _, err := s.Live()
	if err != nil || len(live) != 2 || live[0].Status != session.Pending || live[1].Status != session.Running {
		t.Fatalf("live: %+v, %v", live, err)
	}
	if r := live[1]; r.Spec.Image != "debian" || r.Grants.CPUs[0] != 3 || r.Grants.Memory != gpu.GiB ||
		r.Kernels[0].Container != "c0ffee" {
		t.Errorf("the running session is %+v", r)
	}
	if r := live[1]; r.Kernels[0].Grants.CPUs[0] != 3 || r.Kernels[0].Grants.Memory != gpu.GiB {
		t.Errorf("its kernel was not given what the session holds: %+v", r.Kernels)
	}
	if live[0].Priority != session.DefaultPriority || live[1].Priority != session.DefaultPriority {
		t.Errorf("priorities are %d and %d", live[0].Priority, live[1].Priority)
	}
	done, err := s.List(session.Filter{Finished: true})
	if err != nil || len(done) != 1 || done[0].Reason != session.ReasonUser || done[0].TerminatedAt == nil {
		t.Errorf("finished: %+v, %v", done, err)
	}
	if phases, err := s.History(live[1].ID); err != nil || len(phases) != 1 || phases[0].Steps[0].Step != "plan" {
		t.Errorf("history: %+v, %v", phases, err)
	}
	if _, found, err := s.ByKey("ada", "wish"); !found || err != nil {
		t.Errorf("key: %v, %v", found, err)
	}
	if len(s.Secret()) != 32 {
		t.Errorf("the secret is %d bytes", len(s.Secret()))
	}
	sound(t, s)
}

// TestDatabaseOfSchema2Opens opens a database as schema 2 was released. It is
// never written anew unless by -update while schema 2 is the current one.
func TestDatabaseOfSchema2Opens(t *testing.T) {
	if *update {
		if len(migrations) != 1 {
			t.Fatal("schema 2 is not the current one")
		}
		writeSchema2(t, filepath.Join("testdata", "schema2.db"))
	}
	s := fixture(t, "schema2.db")
	live, _, err := s.Live()
	if err != nil || len(live) != 2 {
		t.Fatalf("live: %+v, %v", live, err)
	}
	waits, runs := live[0], live[1]
	if waits.Priority != 70 || len(waits.DependsOn) != 1 || waits.DependsOn[0] != runs.ID || waits.Spec.Cluster != 2 ||
		waits.Spec.Accelerator.Shares != 500 {
		t.Errorf("the waiting session is %+v", waits)
	}
	if runs.Enforcement != gpu.LevelWatched || len(runs.Grants.GPUs) != 1 ||
		runs.Kernels[0].Grants.GPUs[0].Share != 300 || runs.Spec.Label != "thesis" {
		t.Errorf("the running session is %+v", runs)
	}
	var cursor struct{ Energy int }
	if found, err := s.Account("state", &cursor); !found || err != nil || cursor.Energy != 42 {
		t.Errorf("accounts: %v %v %+v", found, err, cursor)
	}
	secret := s.Secret()
	if again := fixture(t, "schema2.db").Secret(); len(secret) != 32 || !slices.Equal(secret, again) {
		t.Errorf("the secret is %x and then %x", secret, again)
	}
	sound(t, s)
}

func writeSchema2(t *testing.T, path string) {
	t.Helper()
	os.Remove(path)
	s := open(t, path, nil)
	waits := pending("aaaaaaaaaaaa")
	waits.Priority, waits.DependsOn = 70, []session.ID{"bbbbbbbbbbbb"}
	waits.Spec.Cluster, waits.Spec.Accelerator = 2, gpu.Request{Shares: 500}
	create(t, s, waits, "")
	running := pending("bbbbbbbbbbbb")
	running.Status, running.Enforcement, running.Spec.Label = session.Running, gpu.LevelWatched, "thesis"
	running.Grants = session.Grants{CPUs: []int{3}, Memory: gpu.GiB,
		GPUs: []gpu.Grant{{Device: "GPU-0", Share: 300, Memory: 2 * gpu.GiB}}}
	running.Kernels = []session.Kernel{{Name: session.MainKernel, Container: "c0ffee", Status: session.Running,
		Grants: running.Grants}}
	create(t, s, running, "")
	if err := s.Update(func(tx *Tx) error { return tx.PutAccount("state", map[string]int{"Energy": 42}) }); err != nil {
		t.Fatal(err)
	}
	s.Close()
}

func TestMigrationsRunInOrderOrNotAtAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.db")
	s := open(t, path, nil)
	create(t, s, pending("aaaaaaaaaaaa"), "")
	s.Close()
	step := func(n int, fail error) migration {
		return func(tx *bolt.Tx) error {
			meta := tx.Bucket(bucketMeta)
			if err := meta.Put([]byte("trace"), fmt.Appendf(meta.Get([]byte("trace")), "%d", n)); err != nil {
				return err
			}
			return fail
		}
	}
	db, err := openFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	trace := func() (text string) {
		_ = db.View(func(tx *bolt.Tx) error { text = string(tx.Bucket(bucketMeta).Get([]byte("trace"))); return nil })
		return text
	}
	with := func(steps ...migration) []migration { return append(slices.Clone(migrations), steps...) }
	if err := prepare(db,
		with(step(1, nil), step(2, errors.New("no")))); session.CodeOf(err) != session.CodeStoreWrite ||
		trace() != "" {
		t.Fatalf("a failed migration left %q, %v", trace(), err)
	}
	if err := prepare(db, with(step(1, nil), step(2, nil))); err != nil || trace() != "12" {
		t.Fatalf("migrations left %q, %v", trace(), err)
	}
	if err := prepare(db, with(step(1, nil), step(2, nil))); err != nil || trace() != "12" {
		t.Errorf("migrations ran again: %q, %v", trace(), err)
	}
	if err := prepare(db, nil); session.CodeOf(err) != session.CodeStoreFailed {
		t.Errorf("a newer schema passes: %v", err)
	}
}

// TestDatabaseOfSchema2WithImagesOpens opens a database of schema 2 that tells
// of images: one kept at a session's end, one committed by its owner, two
// commits that failed, and one that was brought from another agent.
func TestDatabaseOfSchema2WithImagesOpens(t *testing.T) {
	s := fixture(t, "schema2-images.db")
	claims, err := s.ImageClaims()
	want := map[string]session.ImageOrigin{
		"slipway-custom/ann:nightly-3": {Name: "nightly-3", Owner: "ann", Instance: s.Instance(),
			Session: "cccccccccccc"},
		session.CommitRef("Bob", "Mine-1"): {Name: "Mine-1", Owner: "Bob", Instance: s.Instance(),
			Session: "eeeeeeeeeeee"},
	}
	if err != nil || !maps.Equal(claims, want) {
		t.Errorf("claims: %+v, %v", claims, err)
	}
	images, err := s.Images()
	brought := images["sha256:"+strings.Repeat("7", 64)]
	if err != nil || len(images) != 1 || !slices.Equal(brought.Owners, []string{"ann", "carl"}) ||
		brought.Origin != nil {
		t.Errorf("images: %+v, %v", images, err)
	}
	if found, err := s.Account("received-images", new(any)); found || err != nil {
		t.Errorf("what was brought is kept twice: %v", err)
	}
	sound(t, s)
}
