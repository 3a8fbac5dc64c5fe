//go:build linux

package guest_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"slipway/backend/session"
)

func ownerOf(t testing.TB, path string) int {
	t.Helper()
	var stat syscall.Stat_t
	must(t, syscall.Lstat(path, &stat))
	return int(stat.Uid)
}

func TestPackagesGoToTheContainersOwnLayer(t *testing.T) {
	b := newBox(t, true)
	b.write("etc/profile.d/other.sh", "")
	b.settings.Env = append(b.settings.Env, session.EnvVar{Name: "R_LIBS_USER", Value: "/mine"})
	b.settings.Defaults = []session.EnvVar{{Name: "PIP_CACHE_DIR", Value: "/cache"}, {Name: "IMAGE", Value: "no"},
		{Name: "GREETING", Value: "none"}}
	client := b.start().connect()
	if told := settled(t, client); told != nil {
		t.Errorf("the trouble is %+v", told)
	}
	const path = "/opt/slipway/bin:/opt/tools/bin:/usr/bin:/bin"
	for command, want := range map[string]string{
		"echo $PYTHONUSERBASE $R_LIBS_USER":                              "/opt/slipway /mine",
		"echo $PATH":                                                     path + ":/home/work/.local/bin",
		"echo $PIP_CACHE_DIR $IMAGE $GREETING":                           "/cache yes good day",
		"touch /opt/slipway/R/x /opt/slipway/y && echo yes":              "yes",
		"python3 -c 'import site; print(site.getuserbase())'":            "/opt/slipway",
		"PATH=/bin; . /etc/profile.d/slipway.sh; echo $PATH":             "/opt/slipway/bin:/bin",
		"PATH=/opt/slipway/bin; . /etc/profile.d/slipway.sh; echo $PATH": "/opt/slipway/bin",
	} {
		if got := run(t, client, "/bin/sh", "-c", command); strings.TrimSpace(got.out) != want || got.code != 0 {
			t.Errorf("%s says %+v, want %q", command, got, want)
		}
	}
}

// An image of a session may come from a machine where the person has another number.
func TestPackagesOfAnImageBelongToThePerson(t *testing.T) {
	for name, uid := range map[string]int{"a person": 1234, "root": 0} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, false)
			b.settings.UID, b.settings.GID = uid, uid
			for _, path := range []string{"opt/slipway/bin/tool", "opt/slipway/lib/python3/mine/deep.py"} {
				b.write(path, "")
			}
			top, deep := filepath.Join(b.root, "opt/slipway"), filepath.Join(b.root, "opt/slipway/lib/python3/mine")
			must(t, os.Symlink("/hello", filepath.Join(deep, "link")))
			for _, path := range []string{top, deep} {
				must(t, os.Lchown(path, stranger, stranger))
			}
			settled(t, b.start().connect())
			for _, path := range []string{top, deep, filepath.Join(top, "bin"), filepath.Join(top, "R")} {
				if got := ownerOf(t, path); got != uid {
					t.Errorf("%s belongs to %d", path, got)
				}
			}
		})
	}
}

func TestRootNeedsNoPlaceForPackages(t *testing.T) {
	b := newBox(t, true)
	b.settings.UID, b.settings.GID = 0, 0
	client := b.start().connect()
	settled(t, client)
	if got := run(t, client, "/bin/sh", "-c", "echo $PYTHONUSERBASE; ls -d /opt/slipway"); got.code == 0 ||
		strings.TrimSpace(got.out) != "" {
		t.Errorf("root gets %+v", got)
	}
}

func TestAnAdministratorIsRootWithWhatPackageManagersNeed(t *testing.T) {
	start := func(t *testing.T, admin bool) *box {
		b := newBox(t, true)
		b.write("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nwork:x:77:77::/old:/bin/sh\n")
		b.write("srv/of-another", "")
		must(t, os.Chown(filepath.Join(b.root, "srv/of-another"), stranger, stranger))
		must(t, os.Chmod(filepath.Join(b.root, "srv/of-another"), 0))
		b.settings.UID, b.settings.GID, b.settings.Admin = 0, 0, admin
		return b.start()
	}
	const look = "grep -E 'CapPrm|CapEff|CapBnd|CapInh|CapAmb|NoNewPrivs' /proc/self/status | tr -d '\t\n'"
	t.Run("with them", func(t *testing.T) {
		b := start(t, true)
		client := b.connect()
		settled(t, client)
		for command, want := range map[string]string{
			look: "CapInh:0000000000000000CapPrm:00000000000000fbCapEff:00000000000000fbCapBnd:00000000000000fb" +
				"CapAmb:0000000000000000NoNewPrivs:1",
			"echo $USER $LOGNAME $HOME $(id -un) $(id -u)":       "root root /home/work root 0",
			"cat /srv/of-another && chown 5:5 /srv && echo done": "done",
			"touch /home/work/x && echo done":                    "done",
		} {
			if got := run(t, client, "/bin/sh", "-c", command); strings.TrimSpace(got.out) != want || got.code != 0 {
				t.Errorf("%s says %+v, want %q", command, got, want)
			}
		}
		must(t, client.Close()) // the files go through a helper of their own
		again := b.connect()
		if _, err := again.ReadFile(t.Context(), session.ReadRequest{Path: "/srv/of-another"}); err != nil {
			t.Errorf("reading as an administrator: %v", err)
		}
	})
	t.Run("and nobody else has any", func(t *testing.T) {
		client := start(t, false).connect()
		settled(t, client)
		got := run(t, client, "/bin/sh", "-c", look+"; cat /srv/of-another")
		if got.code == 0 || !strings.Contains(got.out, "CapPrm:0000000000000000CapEff:0000000000000000") {
			t.Errorf("root says %+v", got)
		}
	})
}
