package sshclient_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/session"
	"slipway/backend/sshclient"
)

const goodID = session.ID("gggggggggggg")

// hostile are sessions as an agent may send them that wants to run a command on
// this computer. touch is the command.
func hostile(touch string) map[string]sshclient.Session {
	const id = session.ID("aaaaaaaaaaaa")
	line := fmt.Sprintf("\nMatch exec %q\n#", touch)
	proxy := "\n    ProxyCommand " + touch + "\n#"
	return map[string]sshclient.Session{
		"id":                {ID: id + session.ID(line), Name: "train", Agent: "lab"},
		"id, carriage":      {ID: id + session.ID(strings.ReplaceAll(line, "\n", "\r")), Name: "train", Agent: "lab"},
		"id, proxy":         {ID: id + session.ID(proxy), Name: "train", Agent: "lab"},
		"id, shell":         {ID: session.ID("$(" + touch + ")"), Name: "train", Agent: "lab"},
		"id, expansion":     {ID: "%h", Name: "train", Agent: "lab"},
		"id, pattern":       {ID: "*", Name: "train", Agent: "lab"},
		"id, negated":       {ID: "a !b", Name: "train", Agent: "lab"},
		"id, path":          {ID: "../../config", Name: "train", Agent: "lab"},
		"id, option":        {ID: "-oProxyCommand", Name: "train", Agent: "lab"},
		"id, none":          {ID: "", Name: "train", Agent: "lab"},
		"id, very long":     {ID: session.ID(strings.Repeat("a", 1<<20)), Name: "train", Agent: "lab"},
		"name":              {ID: id, Name: "train" + line, Agent: "lab"},
		"name, shell":       {ID: id, Name: "$(" + touch + ")", Agent: "lab"},
		"name, pattern":     {ID: id, Name: "*", Agent: "lab"},
		"name, very long":   {ID: id, Name: strings.Repeat("a", 1<<20), Agent: "lab"},
		"name of another":   {ID: id, Name: string(goodID), Agent: "lab"},
		"agent":             {ID: id, Name: "train", Agent: "lab" + line},
		"kernel":            {ID: id, Name: "train", Agent: "lab", Kernels: []string{"sub1" + line}},
		"kernel, carriage":  {ID: id, Name: "train", Agent: "lab", Kernels: []string{"sub1\rMatch exec " + touch}},
		"kernel, proxy":     {ID: id, Name: "train", Agent: "lab", Kernels: []string{"sub1" + proxy}},
		"kernel, none":      {ID: id, Name: "train", Agent: "lab", Kernels: []string{""}},
		"kernel, option":    {ID: id, Name: "train", Agent: "lab", Kernels: []string{"--home"}},
		"kernel, expansion": {ID: id, Name: "train", Agent: "lab", Kernels: []string{"%d"}},
		"kernel, twice":     {ID: id, Name: "train", Agent: "lab", Kernels: []string{"sub1", "sub1"}},
		"kernel of another": {ID: id, Name: "sub1.good", Agent: "lab"},
		"kernels, very many": {ID: id, Name: "train", Agent: "lab",
			Kernels: strings.Fields(strings.Repeat("sub1 ", 10_000))},
	}
}

// TestTheConfigurationHoldsNothingElse has the person's ssh read what was written
// for sessions of a hostile agent: no command runs, and a session of an honest
// one keeps its entry.
func TestTheConfigurationHoldsNothingElse(t *testing.T) {
	ssh, err := exec.LookPath("ssh")
	must(t, err)
	touched := filepath.Join(t.TempDir(), "touched")
	for name, bad := range hostile("touch " + touched) {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() {
				if err := os.Remove(touched); err == nil {
					t.Error("ssh has run the command of the agent")
				}
			})
			client, config := open(t, "")
			err := client.Keep([]sshclient.Session{bad,
				{ID: goodID, Name: "good", Agent: "local", Kernels: []string{"sub1"}}})
			refused := strings.HasPrefix(name, "id") || strings.HasPrefix(name, "kernel") && len(bad.Kernels) == 1
			if (session.CodeOf(err) == "agent_reply_invalid") != refused {
				t.Errorf("what could not be written: %v", err)
			}
			if text := read(t, client.ConfigFile()); len(text) > 16<<10 {
				t.Errorf("the configuration has %d bytes", len(text))
			}
			must(t, client.Install())
			honest := string(goodID) + ".slipway"
			for _, host := range []string{"elsewhere", "train.slipway", "good.slipway", "sub1." + honest, honest} {
				cmd := exec.Command(ssh, "-F", filepath.Join(config.Person, "config"), "-G", "--", host)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("ssh refuses the configuration for %s: %v\n%s", host, err, out)
				}
				mine := strings.Contains(string(out), "hostname slipway-"+string(goodID))
				if want := strings.Contains(host, "good") || strings.Contains(host, string(goodID)); mine != want {
					t.Errorf("%s leads to the honest session: %v\n%s", host, mine, out)
				}
				if host == "elsewhere" && strings.Contains(string(out), "ssh-proxy") {
					t.Errorf("%s is led to Slipway:\n%s", host, out)
				}
			}
		})
	}
}

func TestOnlyWhatIsKeptIsPinned(t *testing.T) {
	client, config := open(t, "")
	for name, bad := range hostile("true") {
		for _, kernel := range append(bad.Kernels, "") {
			err := client.Pin(bad.ID, kernel, session.SSHHost{Key: oneKey + "\n* " + otherKey})
			if strings.HasPrefix(name, "id") && session.CodeOf(err) != "ssh_open_invalid" {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	known := read(t, filepath.Join(config.Dir, "known_hosts"))
	for line := range strings.Lines(known) {
		if !strings.HasPrefix(line, "slipway-aaaaaaaaaaaa") || strings.Count(line, " ") != 2 ||
			!strings.HasSuffix(line, oneKey+"\n") {
			t.Errorf("the keys of hosts hold %q", line)
		}
	}
}
