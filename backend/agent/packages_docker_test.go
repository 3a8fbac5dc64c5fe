//go:build unix

package agent

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
)

// makeWheel makes a package for pip, with a module and a program.
const makeWheel = `import zipfile
with zipfile.ZipFile("/tmp/tiny-1.0-py3-none-any.whl", "w") as z:
    z.writestr("tiny.py", "def main(): print('hello from tiny')\n")
    at = "tiny-1.0.dist-info/"
    z.writestr(at + "METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
    z.writestr(at + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr(at + "entry_points.txt", "[console_scripts]\ntiny-hello = tiny:main\n")
    z.writestr(at + "RECORD", "")
`

// makeDeb makes a package for dpkg, with a program of another group.
const makeDeb = `mkdir -p /tmp/deb/DEBIAN /tmp/deb/usr/bin && cd /tmp && printf '%s\n' 'Package: tiny' 'Version: 1' ` +
	`'Architecture: all' 'Maintainer: ada <ada@example.com>' 'Description: tiny' >deb/DEBIAN/control && ` +
	`printf '#!/bin/sh\necho hello from dpkg\n' >deb/usr/bin/tiny-deb && chmod 755 deb/usr/bin/tiny-deb && ` +
	`printf '#!/bin/sh\nchgrp mail /usr/bin/tiny-deb && chmod 2755 /usr/bin/tiny-deb\n' >deb/DEBIAN/postinst && ` +
	`chmod 755 deb/DEBIAN/postinst && dpkg-deb -b deb tiny.deb >/dev/null`

// makeR makes a source package for R, with one function.
const makeR = `mkdir -p /tmp/tinyr/R && cd /tmp/tinyr && printf '%s\n' 'Package: tinyr' 'Version: 1.0' 'Title: Tiny' ` +
	`'Author: ada' 'Maintainer: ada <ada@example.com>' 'Description: Tiny.' 'License: none' >DESCRIPTION && ` +
	`echo 'export(hi)' >NAMESPACE && echo 'hi <- function() cat("hello from R\n")' >R/hi.R`

// asPerson makes the agent that of an ordinary user, whose sessions do not own the files of images.
func asPerson(c *Config) { c.UID, c.GID = 1000, 1000 }

// runs launches a session and waits until it runs.
func (r *real) runs(spec session.Spec) session.Session {
	r.t.Helper()
	s := r.awaitRunning(r.launch(spec).ID)
	if s.Status != session.Running {
		r.t.Fatalf("it is %s: %+v", s.Status, s.Error)
	}
	return s
}

// says runs scripts in a session and compares what they print. An empty text means that a script fails.
func (r *real) says(id session.ID, scripts [][2]string) {
	r.t.Helper()
	for _, script := range scripts {
		got, code := r.exec(id, "bash", "-c", script[0])
		if (code == 0) != (script[1] != "") || code == 0 && strings.TrimSpace(got) != script[1] {
			r.t.Errorf("%s prints %q with %d, want %q", script[0], got, code, script[1])
		}
	}
}

// imageOf makes an image of a session and ends the session.
func (r *real) imageOf(id session.ID, name string) string {
	r.t.Helper()
	work, err := r.agent.CommitSession(r.t.Context(), id, session.CommitRequest{Name: name})
	for err == nil && work.State == session.WorkRunning {
		work, err = r.agent.AwaitImageWork(r.t.Context(), work.ID, work.Revision)
	}
	if err != nil || work.State != session.WorkDone {
		r.t.Fatalf("the image ended as %+v, %v", work, err)
	}
	r.t.Cleanup(func() {
		r.endAll()
		if err := r.agent.RemoveImage(context.Background(), work.Ref); err != nil {
			r.t.Error(err)
		}
	})
	if _, err := r.agent.Terminate(r.t.Context(), id, false); err != nil {
		r.t.Fatal(err)
	}
	r.awaitEnd(id)
	return work.Ref
}

func TestInstalledPackagesStay(t *testing.T) {
	t.Parallel()
	r := newReal(t, t.TempDir(), asPerson)
	s := r.runs(session.Spec{Name: "install", Image: enginetest.ImagePip})
	if len(s.Folders) != 1 || s.Folders[0].Name != session.CacheFolder || !s.Folders[0].Auto ||
		s.Folders[0].Target != "/home/work/.cache" || len(s.Warnings) > 0 {
		t.Errorf("it has %+v and %+v", s.Folders, s.Warnings)
	}
	r.says(s.ID, [][2]string{
		{"id -u", "1000"},
		{"touch /usr/bin/x", ""},
		{"cat >/tmp/wheel.py <<'END'\n" + makeWheel + "END\npython3 /tmp/wheel.py && echo made", "made"},
		{"pip install --no-index -q /tmp/tiny-1.0-py3-none-any.whl && echo installed", "installed"},
		{"tiny-hello; command -v tiny-hello", "hello from tiny\n/opt/slipway/bin/tiny-hello"},
		{"bash -lc tiny-hello", "hello from tiny"},
		{"python3 -c 'import tiny; print(tiny.__file__.split(\"/lib/\")[0])'", "/opt/slipway"},
		{"touch $CONDA_ENVS_DIRS.x && echo $R_LIBS_USER $CONDA_ENVS_DIRS",
			"/opt/slipway/R /opt/slipway/conda"},
		{makeR + " && echo made", "made"},
		{"Rscript -e 'install.packages(\"/tmp/tinyr\", repos = NULL)' >/dev/null 2>&1 && ls $R_LIBS_USER", "tinyr"},
		{"Rscript -e 'tinyr::hi()'", "hello from R"},
		{"echo $UV_CACHE_DIR $CONDA_PKGS_DIRS $HF_HOME",
			"/home/work/.cache/uv /home/work/.cache/conda/pkgs /home/work/.cache/huggingface"},
		{"pip cache dir && mkdir -p ~/.cache/pip && echo kept >~/.cache/pip/kept", "/home/work/.cache/pip"},
		{makeDeb + " && echo made", "made"},
		{"dpkg -i /tmp/tiny.deb", ""},
	})
	again := r.runs(session.Spec{Image: r.imageOf(s.ID, "Installed"),
		Env: []session.EnvVar{{Name: "PIP_CACHE_DIR", Value: "/tmp/mine"}}})
	if again.Folders[0].Folder != s.Folders[0].Folder {
		t.Errorf("another cache is mounted: %+v", again.Folders)
	}
	r.says(again.ID, [][2]string{
		{"tiny-hello", "hello from tiny"},
		{"Rscript -e 'tinyr::hi()'", "hello from R"},
		{"cat ~/.cache/pip/kept; pip cache dir", "kept\n/tmp/mine"},
		{"pip uninstall -q -y tiny; tiny-hello", ""},
	})
	list, err := r.agent.ListFolders(t.Context(), session.FolderFilter{Owner: "ada"})
	if err != nil || len(list) != 1 || list[0].Name != session.CacheFolder || len(list[0].UsedBy) != 1 {
		t.Errorf("the folders are %+v, %v", list, err)
	}
	kept, err := filepath.Glob(filepath.Join(r.dir, "folders", "*", "pip", "kept"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("the cache is not a folder of the machine: %v, %v", kept, err)
	}
	if info, err := os.Stat(kept[0]); err != nil || info.Sys().(*syscall.Stat_t).Uid != 1000 {
		t.Errorf("what is in the cache is not the person's: %+v, %v", info, err)
	}
}

func TestAdministratorSessions(t *testing.T) {
	t.Parallel()
	r := newReal(t, t.TempDir(), asPerson)
	spec := session.Spec{Name: "system", Image: enginetest.ImagePip, Access: session.Access{Admin: true}}
	s := r.runs(spec)
	if len(s.Folders) > 0 || len(s.Warnings) > 0 {
		t.Errorf("it has %+v and %+v", s.Folders, s.Warnings)
	}
	r.says(s.ID, [][2]string{
		{"id -un; id -u; echo $HOME", "root\n0\n/home/work"},
		{"grep CapEff /proc/self/status | cut -f2; grep NoNewPrivs /proc/self/status | cut -f2",
			"00000000000000fb\n1"},
		{makeDeb + " && apt-get install -y -qq /tmp/tiny.deb >/dev/null && tiny-deb", "hello from dpkg"},
		{"stat -c '%a %G' /usr/bin/tiny-deb", "2755 mail"},
		{"mount -t tmpfs none /mnt", ""},
		{"unshare -U true", ""},
		{"mknod /tmp/disk b 8 0", ""},
		{"kill -9 1; ls /.slipway/guest", "/.slipway/guest"},
	})
	work := r.imageOf(s.ID, "System")
	ordinary := r.runs(session.Spec{Image: work})
	r.says(ordinary.ID, [][2]string{
		{"id -un; id -u; tiny-deb", "work\n1000\nhello from dpkg"},
		{"dpkg -r tiny", ""},
		{"touch /usr/bin/x", ""},
	})
	spec.Mounts = []session.Mount{{Source: t.TempDir(), Target: "data"}}
	if _, err := r.agent.Launch(t.Context(), session.LaunchRequest{Spec: spec}); !refusesAdmin(err) {
		t.Errorf("with a mount it ends with %v", err)
	}
}

// refusesAdmin reports whether a launch was refused for being one of an administrator session.
func refusesAdmin(err error) bool {
	e := session.AsError(err, "")
	return e.Code == session.CodeInvalid && slices.ContainsFunc(e.Fields, func(f session.FieldError) bool {
		return f.Field == "admin"
	})
}
