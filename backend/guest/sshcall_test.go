//go:build linux

package guest

import (
	"slices"
	"testing"
	"time"

	"slipway/backend/engine"
)

func TestCommandLinesOfSSHAreRead(t *testing.T) {
	for _, c := range []struct {
		args []string
		want sshCall
	}{
		{[]string{"sub1"}, sshCall{host: "sub1"}},
		{[]string{"sub1", "python", "train.py", "-n", "4"}, sshCall{host: "sub1", command: "python train.py -n 4"}},
		{[]string{"-x", "-p2200", "-l", "work", "sub1", "true"}, sshCall{host: "sub1", port: 2200, user: "work",
			command: "true"}},
		{[]string{"-qn", "-o", "BatchMode=yes", "-o", "Port 2300", "-oUser=ann", "me@sub1"},
			sshCall{host: "sub1", noInput: true, port: 2300, user: "ann"}},
		{[]string{"sub1", "-p", "22", "-tt", "--", "ls", "-l"},
			sshCall{host: "sub1", port: 22, tty: 2, command: "-- ls -l"}},
		{[]string{"-T", "-i", "key", "-oConnectTimeout=4", "-o", "StrictHostKeyChecking no", "ssh://ann@sub1"},
			sshCall{host: "sub1", user: "ann", tty: -1, keys: []string{"key"}, timeout: 4 * time.Second, unsafe: true}},
		{[]string{"-V"}, sshCall{version: true}},
	} {
		got, err := parseSSH(c.args)
		if err != nil {
			t.Errorf("%q: %v", c.args, err)
			continue
		}
		same := got.host == c.want.host && got.user == c.want.user && got.port == c.want.port &&
			got.command == c.want.command && got.tty == c.want.tty &&
			got.noInput == c.want.noInput && got.version == c.want.version && got.unsafe == c.want.unsafe &&
			got.timeout == c.want.timeout && slices.Equal(got.keys, c.want.keys)
		if !same {
			t.Errorf("%q:\n got %+v\nwant %+v", c.args, *got, c.want)
		}
	}
	for _, args := range [][]string{nil, {"-p"}, {"-p", "x", "sub1"}, {"-L", "1:a:2", "sub1"}, {"-Z", "sub1"}} {
		if _, err := parseSSH(args); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}

func TestConfigurationAppliesToItsHosts(t *testing.T) {
	const text = `
User everybody
Host main1 sub1
    Port 2222
    IdentityFile ~/.ssh/id_slipway
    StrictHostKeyChecking no
Host !sub1 sub*
    Port = 99
Match user ann
    Port 1
Host *
    User late
`
	for host, want := range map[string]sshCall{
		"sub1":  {target: "sub1", user: "everybody", port: 2222, keys: []string{"/h/.ssh/id_slipway"}},
		"sub2":  {target: "sub2", user: "everybody", port: 99},
		"other": {target: "other", user: "everybody", port: 22},
	} {
		c := &sshCall{host: host}
		c.apply(sshConfig(text, host), "/h")
		c.fill()
		if c.target != want.target || c.user != want.user || c.port != want.port || !slices.Equal(c.keys, want.keys) ||
			c.unsafe || c.timeout != connectTimeout {
			t.Errorf("%s: got %+v, want %+v", host, *c, want)
		}
	}
	c := &sshCall{host: "sub1", port: 7}
	c.apply(sshConfig(text, "sub1"), "/h")
	if c.port != 7 {
		t.Error("a file outdoes the command line")
	}
}

func TestTerminalsAreAskedForAsBySSH(t *testing.T) {
	for _, c := range []struct {
		call sshCall
		here bool
		want bool
	}{
		{sshCall{}, true, true}, {sshCall{}, false, false}, {sshCall{command: "ls"}, true, false},
		{sshCall{command: "ls", tty: 1}, true, true}, {sshCall{command: "ls", tty: 1}, false, false},
		{sshCall{command: "ls", tty: 2}, false, true}, {sshCall{tty: -1}, true, false},
		{sshCall{noInput: true}, true, false},
	} {
		if got := c.call.wantsTTY(c.here); got != c.want {
			t.Errorf("%+v here %v: got %v", c.call, c.here, got)
		}
	}
}

func TestOurPartOfAConfigurationIsReplaced(t *testing.T) {
	cluster := engine.Cluster{Hosts: []string{"main1"}}
	once := append(clusterConfig(cluster), "Host lab")
	twice := append(clusterConfig(cluster), withoutOurs(slices.Clone(once))...)
	if !slices.Equal(once, twice) {
		t.Errorf("got %q", twice)
	}
	if got := withoutOurs([]string{clusterEnd, "Host lab", clusterBegin}); len(got) != 3 {
		t.Errorf("a broken part was cut: %q", got)
	}
}
