package sshclient_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/backend/session"
	"slipway/backend/sshclient"
)

// open opens a client in a folder of its own, with a person's configuration.
func open(t *testing.T, person string) (*sshclient.Client, sshclient.Config) {
	t.Helper()
	config := sshclient.Config{Dir: filepath.Join(t.TempDir(), "ssh"), Person: filepath.Join(t.TempDir(), ".ssh"),
		Program: "/opt/my apps/slipway", Home: "/data/100%"}
	if person != "" {
		must(t, os.MkdirAll(config.Person, 0o700))
		must(t, os.WriteFile(filepath.Join(config.Person, "config"), []byte(person), 0o644))
	}
	client, err := sshclient.Open(config)
	must(t, err)
	return client, config
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

func TestTheKeyIsMadeOnce(t *testing.T) {
	first, config := open(t, "")
	second, err := sshclient.Open(config)
	must(t, err)
	if first.Key() != second.Key() || !strings.HasPrefix(first.Key(), "ssh-ed25519 ") {
		t.Errorf("%q, then %q", first.Key(), second.Key())
	}
	must(t, os.WriteFile(first.KeyFile(), []byte("no key"), 0o600))
	if _, err := sshclient.Open(config); session.CodeOf(err) != "ssh_setup_failed" {
		t.Errorf("a broken key: %v", err)
	}
}

func TestNamesMeanNothingElse(t *testing.T) {
	client, _ := open(t, "Host lab *.example.org\n  User me\nHost *\n  Compression yes\n")
	must(t, client.Keep([]sshclient.Session{
		{ID: "a1aaaaaaaaaa", Name: "train", Agent: "local"},
		{ID: "a2aaaaaaaaaa", Name: "lab", Agent: "local"},
		{ID: "a3aaaaaaaaaa", Name: "github.com", Agent: "local"},
		{ID: "a4aaaaaaaaaa", Name: "twice", Agent: "local"},
		{ID: "a5aaaaaaaaaa", Name: "twice", Agent: "far"},
		{ID: "a6aaaaaaaaaa", Name: "LocalHost", Agent: "local"},
		{ID: "a7aaaaaaaaaa", Name: "odd *name?\n", Agent: "local"},
		{ID: "a8aaaaaaaaaa", Name: "thrice", Agent: "far"},
		{ID: "a9aaaaaaaaaa", Name: "Thrice", Agent: "far"},
	}))
	for id, want := range map[session.ID][]string{
		"a1aaaaaaaaaa": {"train", "train.slipway", "a1aaaaaaaaaa.slipway"},
		"a2aaaaaaaaaa": {"lab.slipway", "a2aaaaaaaaaa.slipway"},
		"a3aaaaaaaaaa": {"github.com.slipway", "a3aaaaaaaaaa.slipway"},
		"a4aaaaaaaaaa": {"twice.local.slipway", "a4aaaaaaaaaa.slipway"},
		"a5aaaaaaaaaa": {"twice.far.slipway", "a5aaaaaaaaaa.slipway"},
		"a6aaaaaaaaaa": {"LocalHost.slipway", "a6aaaaaaaaaa.slipway"},
		"a7aaaaaaaaaa": {"odd--name", "odd--name.slipway", "a7aaaaaaaaaa.slipway"},
		"a8aaaaaaaaaa": {"a8aaaaaaaaaa.slipway"},
		"a9aaaaaaaaaa": {"a9aaaaaaaaaa.slipway"},
	} {
		if got := client.Names(id); !slices.Equal(got, want) {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
}

// A machine may call its session as a host is called that the person logs in to.
func TestASessionDoesNotStandInForAKnownHost(t *testing.T) {
	client, config := open(t, "")
	must(t, os.MkdirAll(config.Person, 0o700))
	known := filepath.Join(config.Person, "known_hosts")
	must(t, os.WriteFile(known, []byte("hidden "+oneKey+"\n"), 0o600))
	if out, err := exec.Command("ssh-keygen", "-H", "-f", known).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	plain := "# hosts\n[Store]:2222,10.0.0.1 " + oneKey + "\n@revoked vault " + oneKey + "\nodd\n|1|x|y| z\n"
	must(t, os.WriteFile(known, []byte(plain+read(t, known)), 0o600))
	names := []string{"store", "Vault", "hidden", "train"}
	var sessions []sshclient.Session
	for i, name := range names {
		id := session.ID(fmt.Sprintf("a%daaaaaaaaaa", i))
		sessions = append(sessions, sshclient.Session{ID: id, Name: name, Agent: "lab"})
	}
	must(t, client.Keep(sessions))
	for i, name := range names {
		if got := client.Names(sessions[i].ID)[0]; (got == name) != (name == "train") {
			t.Errorf("%s is reached as %s", name, got)
		}
	}
}

func TestTheConfigurationSaysHow(t *testing.T) {
	client, config := open(t, "")
	train := sshclient.Session{ID: "a1aaaaaaaaaa", Name: "train", Agent: "local", Kernels: []string{"sub1"}}
	must(t, client.Keep([]sshclient.Session{train}))
	text := read(t, client.ConfigFile())
	for _, line := range []string{
		"Host train train.slipway a1aaaaaaaaaa.slipway",
		"Host sub1.train.slipway sub1.a1aaaaaaaaaa.slipway",
		"    HostKeyAlias slipway-a1aaaaaaaaaa",
		"    HostKeyAlias slipway-a1aaaaaaaaaa-sub1",
		"    ProxyCommand '/opt/my apps/slipway' ssh-proxy --home '/data/100%%' a1aaaaaaaaaa",
		"    ProxyCommand '/opt/my apps/slipway' ssh-proxy --home '/data/100%%' --kernel sub1 a1aaaaaaaaaa",
		`    IdentityFile "` + filepath.Join(config.Dir, "id_container") + `"`,
		"    StrictHostKeyChecking yes",
	} {
		if !slices.Contains(strings.Split(text, "\n"), line) {
			t.Errorf("there is no line %q in\n%s", line, text)
		}
	}
	must(t, client.Keep(nil))
	if text := read(t, client.ConfigFile()); strings.Contains(text, "Host ") {
		t.Errorf("it is there still:\n%s", text)
	}
}

// The public keys of two hosts.
const (
	oneKey   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA4dFxhTNkEG3nLkFj5bCFKbFFu7MFnbFbIPb4GZ2Cw0"
	otherKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB4dFxhTNkEG3nLkFj5bCFKbFFu7MFnbFbIPb4GZ2Cw0"
)

func TestAHostIsPinned(t *testing.T) {
	client, config := open(t, "")
	sessions := []sshclient.Session{
		{ID: "a1aaaaaaaaaa", Name: "train", Kernels: []string{"sub1"}}, {ID: "a2aaaaaaaaaa", Name: "other"},
	}
	must(t, client.Keep(sessions))
	must(t, client.Pin("a1aaaaaaaaaa", "", session.SSHHost{Key: oneKey}))
	must(t, client.Pin("a1aaaaaaaaaa", "main1", session.SSHHost{Key: oneKey + " comment"}))
	must(t, client.Pin("a1aaaaaaaaaa", "sub1", session.SSHHost{Key: otherKey}))
	must(t, client.Pin("a2aaaaaaaaaa", "", session.SSHHost{Key: otherKey}))
	if err := client.Pin("a1aaaaaaaaaa", "", session.SSHHost{Key: otherKey}); session.CodeOf(
		err) != "ssh_open_conflict" {
		t.Errorf("another key: %v", err)
	}
	if err := client.Pin("a1aaaaaaaaaa", "", session.SSHHost{Key: "nonsense"}); session.CodeOf(
		err) != "ssh_open_invalid" {
		t.Errorf("no key: %v", err)
	}
	known := filepath.Join(config.Dir, "known_hosts")
	want := "slipway-a1aaaaaaaaaa " + oneKey + "\nslipway-a1aaaaaaaaaa-sub1 " + otherKey + "\n" +
		"slipway-a2aaaaaaaaaa " + otherKey + "\n"
	if got := read(t, known); got != want {
		t.Errorf("known: %q, want %q", got, want)
	}
	must(t, client.Keep(sessions[1:]))
	if got, want := read(t, known), "slipway-a2aaaaaaaaaa "+otherKey+"\n"; got != want {
		t.Errorf("after the end: %q, want %q", got, want)
	}
}

func TestThePersonsConfigurationIsLeftAsItWas(t *testing.T) {
	for name, before := range map[string]string{
		"none":          "",
		"some":          "# mine\n\nHost lab\n    User me\n",
		"without end":   "Host lab\n    User me",
		"an empty line": "\n\nHost lab\n",
	} {
		t.Run(name, func(t *testing.T) {
			client, config := open(t, before)
			path := filepath.Join(config.Person, "config")
			for range 2 {
				must(t, client.Install())
			}
			text := read(t, path)
			if strings.Count(text, "Include ") != 1 || !strings.HasSuffix(text, before) ||
				!strings.HasPrefix(text, "# Slipway") {
				t.Errorf("installed: %q", text)
			}
			if yes, err := client.Installed(); !yes || err != nil {
				t.Errorf("installed: %v, %v", yes, err)
			}
			must(t, client.Remove())
			must(t, client.Remove())
			if before == "" {
				if _, err := os.Stat(path); !os.IsNotExist(err) {
					t.Errorf("a file was left: %v", err)
				}
				return
			}
			info, err := os.Stat(path)
			must(t, err)
			if got := read(t, path); got != before || info.Mode().Perm() != 0o644 {
				t.Errorf("after all: %q, %v", got, info.Mode())
			}
		})
	}
	t.Run("behind a link", func(t *testing.T) {
		client, config := open(t, "")
		real := filepath.Join(t.TempDir(), "dotfiles")
		must(t, os.WriteFile(real, []byte("Host lab\n"), 0o600))
		must(t, os.MkdirAll(config.Person, 0o700))
		must(t, os.Symlink(real, filepath.Join(config.Person, "config")))
		must(t, client.Install())
		if info, err := os.Lstat(filepath.Join(config.Person, "config")); err != nil ||
			info.Mode()&os.ModeSymlink == 0 || !strings.Contains(read(t, real), "Include ") {
			t.Errorf("the link: %v, %v", info, err)
		}
		must(t, client.Remove())
		if got := read(t, real); got != "Host lab\n" {
			t.Errorf("after all: %q", got)
		}
	})
}

func TestTheEditorIsGivenTheNameOfTheHost(t *testing.T) {
	client, _ := open(t, "Host train\n")
	must(t, client.Keep([]sshclient.Session{
		{ID: "a1aaaaaaaaaa", Name: "train", Agent: "local"}, {ID: "a2aaaaaaaaaa", Name: "odd name", Agent: "local"},
	}))
	for id, want := range map[session.ID]string{
		"a1aaaaaaaaaa": "vscode://vscode-remote/ssh-remote+train.slipway/home/work",
		"a2aaaaaaaaaa": "vscode://vscode-remote/ssh-remote+odd-name/home/work",
		"a3aaaaaaaaaa": "",
	} {
		if got := client.Editor(id); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}
