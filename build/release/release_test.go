package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"slipway/backend/updates"
)

const log = "# Changelog\n\nWhat users notice.\n\n## Unreleased\n\n### New\n- Flight.\n\n" +
	"## 1.0.0, 2026-10-01\n\n- Walking.\n"

// newTree makes a repository with version 1.0.0 and its tag.
func newTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, variable := range []string{"GIT_AUTHOR", "GIT_COMMITTER"} {
		t.Setenv(variable+"_NAME", "Ada")
		t.Setenv(variable+"_EMAIL", "ada@example.org")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	write(t, filepath.Join(root, changelogFile), log)
	write(t, filepath.Join(root, versionFile), "1.0.0\n")
	write(t, filepath.Join(root, ".gitignore"), "build/bin\n")
	do(t, root, "git", "init", "--quiet")
	do(t, root, "git", "add", ".")
	do(t, root, "git", "commit", "--quiet", "--message", "first")
	do(t, root, "git", "tag", "v1.0.0")
	return root
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func do(t *testing.T, dir string, name string, args ...string) string {
	t.Helper()
	out, err := output(dir, "", name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCut(t *testing.T) {
	root := newTree(t)
	for version, want := range map[string]string{
		"1.0.0": "not newer than 1.0.0", "0.9.0": "not newer", "1.0.0-rc.1": "not newer", "1.1": "no version",
		"v1.1.0": "no version",
	} {
		if err := cut(root, version, "2026-11-27"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", version, err)
		}
	}
	write(t, filepath.Join(root, "stray"), "")
	if err := cut(root, "1.1.0", "2026-11-27"); err == nil || !strings.Contains(err.Error(), "stray") {
		t.Errorf("with a stray file: %v", err)
	}
	if err := os.Remove(filepath.Join(root, "stray")); err != nil {
		t.Fatal(err)
	}
	if err := cut(root, "1.1.0", "2026-11-27"); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(log, "## Unreleased\n", "## Unreleased\n\n## 1.1.0, 2026-11-27\n", 1)
	if got := read(t, root, changelogFile); got != want {
		t.Errorf("the changelog is\n%s", got)
	}
	if got := read(t, root, versionFile); got != "1.1.0\n" {
		t.Errorf("the version is %q", got)
	}
	if got := do(t, root, "git", "log", "-1", "--format=%s", "--name-only"); got !=
		"release: version 1.1.0\n\nCHANGELOG.md\nbuild/VERSION\n" {
		t.Errorf("the commit is %q", got)
	}
	if got := do(t, root, "git", "for-each-ref", "--format=%(objecttype) %(contents)", "refs/tags/v1.1.0"); got !=
		"tag Slipway 1.1.0\n\n### New\n- Flight.\n\n" {
		t.Errorf("the tag is %q", got)
	}
	if got := do(t, root, "git", "status", "--porcelain"); got != "" {
		t.Errorf("left over: %s", got)
	}
	if err := cut(root, "1.2.0", "2026-11-28"); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("with nothing new: %v", err)
	}
}

// makeDeb makes a package in the directory of the packages of a tree.
func makeDeb(t *testing.T, root, version string) {
	t.Helper()
	from := t.TempDir()
	write(t, filepath.Join(from, "DEBIAN/control"), fmt.Sprintf("Package: slipway\nVersion: %s\nArchitecture: amd64\n"+
		"Maintainer: Ada <ada@example.org>\nDescription: test\n of two lines\n", version))
	write(t, filepath.Join(from, "usr/share/doc/slipway/version"), version)
	to := filepath.Join(root, "build/bin/packages", "slipway_"+version+"_amd64.deb")
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	do(t, from, "dpkg-deb", "--root-owner-group", "-Znone", "--build", ".", to)
}

// apt is apt with directories of its own.
type apt struct {
	t    *testing.T
	root string
}

// newApt reads one repository. option is of its line among the sources.
func newApt(t *testing.T, site, option string) apt {
	t.Helper()
	a := apt{t, t.TempDir()}
	for _, dir := range []string{"etc/apt/apt.conf.d", "etc/apt/preferences.d", "state/lists/partial",
		"cache/archives/partial", "downloads"} {
		if err := os.MkdirAll(filepath.Join(a.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(a.root, "etc/apt/sources.list"), "deb ["+option+"] file:"+site+"/apt stable main\n")
	write(t, filepath.Join(a.root, "status"), "")
	write(t, filepath.Join(a.root, "apt.conf"), strings.ReplaceAll(`Dir "ROOT";
Dir::Etc "ROOT/etc/apt";
Dir::State "ROOT/state";
Dir::State::status "ROOT/status";
Dir::Cache "ROOT/cache";
Dir::Log "ROOT";
Dir::Bin::methods "/usr/lib/apt/methods";
APT::Architecture "amd64";
APT::Architectures "amd64";
APT::Sandbox::User "";
Acquire::Languages "none";
`, "ROOT", a.root))
	t.Setenv("APT_CONFIG", filepath.Join(a.root, "apt.conf"))
	return a
}

func (a apt) get(args ...string) string {
	a.t.Helper()
	return do(a.t, filepath.Join(a.root, "downloads"), "apt-get", args...)
}

func (a apt) candidate() string {
	a.t.Helper()
	_, rest, _ := strings.Cut(do(a.t, a.root, "apt-cache", "policy", "slipway"), "Candidate: ")
	version, _, _ := strings.Cut(rest, "\n")
	return version
}

func TestASiteServesApt(t *testing.T) {
	root, site := newTree(t), t.TempDir()
	publish := func(key string) error { return makeSite(root, site, key) }
	if err := publish(""); err == nil || !strings.Contains(err.Error(), "make package") {
		t.Errorf("without packages: %v", err)
	}
	makeDeb(t, root, "1.0.0")
	if err := publish(""); err != nil {
		t.Fatal(err)
	}
	a := newApt(t, site, "trusted=yes")
	a.get("update")
	if got := a.candidate(); got != "1.0.0" {
		t.Errorf("apt would install %q", got)
	}
	write(t, filepath.Join(a.root, "status"), "Package: slipway\nStatus: install ok installed\nVersion: 1.0.0\n"+
		"Architecture: amd64\nMaintainer: Ada <ada@example.org>\nDescription: test\n\n")
	if got := a.get("--simulate", "upgrade"); strings.Contains(got, "Inst ") {
		t.Errorf("an upgrade to the same version: %s", got)
	}

	if err := cut(root, "1.1.0", "2026-11-27"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(root, "build/bin")); err != nil {
		t.Fatal(err)
	}
	makeDeb(t, root, "1.1.0")
	if err := publish(""); err != nil {
		t.Fatal(err)
	}
	a.get("update")
	const offered = "Inst slipway [1.0.0] (1.1.0 Slipway:stable [amd64])"
	if got := a.get("--simulate", "upgrade"); !strings.Contains(got, offered) {
		t.Errorf("the upgrade is not offered: %s", got)
	}
	if got := do(t, a.root, "apt-cache", "madison", "slipway"); strings.Count(got, "\n") != 2 {
		t.Errorf("both versions can be installed: %s", got)
	}
	a.get("download", "slipway")
	deb := "slipway_1.1.0_amd64.deb"
	if read(t, a.root, "downloads", deb) != read(t, root, "build/bin/packages", deb) {
		t.Error("what apt downloads is another file")
	}

	var latest updates.Release
	if err := json.Unmarshal([]byte(read(t, site, "latest.json")), &latest); err != nil ||
		latest != (updates.Release{Version: "1.1.0", Date: "2026-11-27", Notes: "### New\n- Flight."}) {
		t.Errorf("%+v, %v", latest, err)
	}
	if files, err := os.ReadDir(filepath.Join(site, "files")); err != nil || len(files) != 1 {
		t.Errorf("the downloads are %v, %v", files, err)
	}
	release := read(t, site, "apt/dists/stable/Release")
	if err := publish(""); err != nil || read(t, site, "apt/dists/stable/Release") != release {
		t.Errorf("a second time it is another: %v", err)
	}

	t.Run("signed", func(t *testing.T) {
		home, err := os.MkdirTemp("", "gpg") // short, for the socket of its agent
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("GNUPGHOME", home)
		defer os.RemoveAll(home)
		defer func() { do(t, home, "gpgconf", "--kill", "all") }()
		do(t, home, "gpg", "--batch", "--passphrase", "", "--quick-generate-key", "Releases <releases@example.org>",
			"ed25519", "sign", "never")
		if err := publish("releases@example.org"); err != nil {
			t.Fatal(err)
		}
		a := newApt(t, site, "signed-by="+site+"/slipway.asc")
		a.get("update")
		if got := a.candidate(); got != "1.1.0" {
			t.Errorf("apt would install %q", got)
		}
		index := filepath.Join(site, "apt/dists/stable/InRelease")
		write(t, index, strings.Replace(read(t, index), "Suite: stable", "Suite: stale", 1))
		a = newApt(t, site, "signed-by="+site+"/slipway.asc")
		if out, err := output(a.root, "", "apt-get", "--option", "APT::Update::Error-Mode=any", "update"); err == nil {
			t.Errorf("apt takes what was changed after it was signed: %s", out)
		}
		if err := publish(""); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(index); !os.IsNotExist(err) {
			t.Errorf("an old signature stays: %v", err)
		}
	})
}

// The package in testdata has no files. nfpm made it.
func TestASiteServesDNF(t *testing.T) {
	root, site := newTree(t), t.TempDir()
	const name = "slipway-1.0.0-1.x86_64.rpm"
	write(t, filepath.Join(root, "build/bin/packages", name), read(t, "testdata", name))
	if err := makeSite(root, site, ""); err != nil {
		t.Fatal(err)
	}
	index := read(t, site, "rpm/repodata/repomd.xml")
	list := regexp.MustCompile(`repodata/[0-9a-f]{64}-primary.xml.gz`).FindString(index)
	packed, err := gzip.NewReader(strings.NewReader(read(t, site, "rpm", list)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(packed)
	sum := fmt.Sprintf("%x</checksum>", sha256.Sum256([]byte(read(t, "testdata", name))))
	for _, want := range []string{`<name>slipway</name>`, `ver="1.0.0"`, `<location href="` + name + `"/>`, sum} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s is missing in %s (%v)", want, text, err)
		}
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(root, "build/bin/packages", name), later, later); err != nil {
		t.Fatal(err)
	}
	if err := makeSite(root, site, ""); err != nil || read(t, site, "rpm/repodata/repomd.xml") != index {
		t.Errorf("a second time it is another: %v", err)
	}
}

func TestNotes(t *testing.T) {
	root := newTree(t)
	for version, want := range map[string]string{"": "### New\n- Flight.", "1.0.0": "- Walking."} {
		if got, err := sectionOf(root, version); err != nil || got.notes != want {
			t.Errorf("%q: %q, %v", version, got.notes, err)
		}
	}
	if _, err := sectionOf(root, "1.0"); err == nil {
		t.Error("a version that is not there has notes")
	}
	if !bytes.Equal(zipped([]byte(log)), zipped([]byte(log))) {
		t.Error("the same text is packed into other bytes")
	}
}
