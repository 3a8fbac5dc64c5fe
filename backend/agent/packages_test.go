//go:build unix

package agent

import (
	"slices"
	"testing"
	"testing/synctest"

	"slipway/backend/engine"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
)

// running launches a session and returns it with its container.
func (w *world) running(owner string, spec session.Spec) (session.Session, engine.Container) {
	w.t.Helper()
	s := w.launchAs(owner, spec)
	s = w.awaitStatus(s.ID, session.Running)
	c, found := w.fake.Container(s.Container())
	if !found {
		w.t.Fatalf("%s has no container", s.Name)
	}
	return s, c
}

func cacheOf(s session.Session) *session.FolderMount {
	i := slices.IndexFunc(s.Folders, func(m session.FolderMount) bool { return m.Name == session.CacheFolder })
	if i < 0 {
		return nil
	}
	return &s.Folders[i]
}

func TestACacheIsMadeForEachPersonAndMounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), func(c *Config) { c.UID, c.GID = 0, 0 })
		first, c := w.running("", session.Spec{Name: "first"})
		cache := cacheOf(first)
		if cache == nil || !cache.Auto || cache.ReadOnly || cache.Target != session.CachePath {
			t.Fatalf("the first session has %+v", first.Folders)
		}
		if !slices.ContainsFunc(c.Mounts, func(m session.Mount) bool { return m.Target == session.CachePath }) {
			t.Errorf("the container mounts %+v", c.Mounts)
		}
		if valueOf(c.Guest.Defaults, "PIP_CACHE_DIR") != "/home/work/.cache/pip" ||
			valueOf(c.Guest.Defaults, "HF_HOME") != "/home/work/.cache/huggingface" {
			t.Errorf("the variables are %+v", c.Guest.Defaults)
		}
		if second, _ := w.running("", session.Spec{Name: "second"}); cacheOf(second).Folder != cache.Folder {
			t.Errorf("the second has another cache: %+v", second.Folders)
		}
		if bob, _ := w.running("bob", session.Spec{Name: "bobs"}); cacheOf(bob) == nil ||
			cacheOf(bob).Folder == cache.Folder {
			t.Errorf("another person has %+v", bob.Folders)
		}
		own := session.Mount{Source: t.TempDir(), Target: ".cache/pip"}
		if s, c := w.running("", session.Spec{Name: "with-mine", Mounts: []session.Mount{own}}); cacheOf(s) != nil ||
			valueOf(c.Guest.Defaults, "PIP_CACHE_DIR") != "" || valueOf(c.Guest.Defaults, "GIT_CONFIG_COUNT") != "1" ||
			valueOf(c.Guest.Defaults, "GIT_CONFIG_VALUE_0") != "/home/work/.cache/pip" {
			t.Errorf("with a mount of its own it has %+v and %+v", s.Folders, c.Guest.Defaults)
		}
		readOnly := session.FolderReadOnly
		if _, err := w.agent.UpdateFolder(t.Context(), cache.Folder,
			session.FolderChange{Permission: &readOnly}); err != nil {
			t.Fatal(err)
		}
		if s, c := w.running("", session.Spec{Name: "only-reads"}); !cacheOf(s).ReadOnly ||
			len(c.Guest.Defaults) > 0 {
			t.Errorf("with a cache that is only read it has %+v and %+v", s.Folders, c.Guest.Defaults)
		}
		all, err := w.agent.ListFolders(t.Context(), session.FolderFilter{Owner: "ada"})
		if err != nil || len(all) != 1 || len(all[0].UsedBy) != 3 {
			t.Errorf("the folders are %+v, %v", all, err)
		}
	})
}

func TestADeletedCacheIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), func(c *Config) { c.UID, c.GID = 0, 0 })
		s, _ := w.running("", session.Spec{Name: "first"})
		old := cacheOf(s).Folder
		if _, err := w.agent.Terminate(t.Context(), s.ID, true); err != nil {
			t.Fatal(err)
		}
		w.awaitStatus(s.ID, session.Terminated)
		if _, err := w.agent.TrashFolder(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		if s, _ := w.running("", session.Spec{Name: "second"}); cacheOf(s) == nil || cacheOf(s).Folder == old {
			t.Errorf("it has %+v", s.Folders)
		}
	})
}

func TestAnAdministratorSessionHasNoFolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		if _, err := w.agent.CreateFolder(t.Context(), session.FolderRequest{Name: ".dot"}); err != nil {
			t.Fatal(err)
		}
		admin := session.Access{Admin: true}
		s, c := w.running("", session.Spec{Name: "system", Access: admin})
		if len(s.Folders) > 0 || len(c.Mounts) > 0 || !c.Guest.Admin || c.Guest.UID != 0 || c.Guest.GID != 0 {
			t.Errorf("it has %+v, %+v and %+v", s.Folders, c.Mounts, c.Guest)
		}
		if _, c := w.running("", session.Spec{Name: "ordinary"}); c.Guest.Admin || c.Guest.UID != 1000 {
			t.Errorf("an ordinary one has %+v", c.Guest)
		}
		for name, spec := range map[string]session.Spec{
			"a directory": {Mounts: []session.Mount{{Source: t.TempDir(), Target: "data"}}},
			"a folder":    {Mounts: []session.Mount{{Folder: ".dot"}}},
			"a cluster":   {Cluster: 2},
		} {
			spec.Image, spec.Access = "python:3.12", admin
			if _, err := w.agent.Launch(t.Context(), session.LaunchRequest{Spec: spec}); !refusesAdmin(err) {
				t.Errorf("%s: it ends with %v", name, err)
			}
		}
	})
}

func TestAdministratorSessionsCanBeForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), func(c *Config) { c.Sessions.Admins = session.AdminsNone })
		spec := session.Spec{Image: "python:3.12", Access: session.Access{Admin: true}}
		_, err := w.agent.Launch(t.Context(), session.LaunchRequest{Spec: spec, ByAdmin: true})
		if !refusesAdmin(err) {
			t.Errorf("it ends with %v", err)
		}
		p, err := w.agent.Preview(t.Context(), "", spec, 1)
		if err != nil || !slices.ContainsFunc(p.Errors, func(e session.FieldError) bool {
			return e.Field == "admin" && e.Kind == session.KindForbidden && e.Hint != ""
		}) {
			t.Errorf("the preview says %+v, %v", p.Errors, err)
		}
	})
}
