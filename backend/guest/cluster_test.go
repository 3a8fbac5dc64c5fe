//go:build linux

package guest_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"slipway/backend/engine"
	"slipway/backend/guest/link"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

// newKey makes a private key as an agent delivers it.
func newKey(t testing.TB) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// kernelAddress is the address of the one kernel in its private network.
const kernelAddress = "10.201.7.9"

// newKernel starts a container that is the only kernel of a cluster session,
// with this machine's ssh, and a network of its own. change may alter it before.
func newKernel(t testing.TB, change func(*box)) (*box, *link.Client) {
	t.Helper()
	b := newBox(t, true)
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Fatalf("this test needs the package openssh-client: %v", err)
	}
	b.settings.Cluster = &engine.Cluster{Self: "main1", Hosts: []string{"main1", "sub1"}, HostKey: newKey(t),
		UserKey: newKey(t)}
	b.write("etc/hosts", "127.0.0.1 localhost\n"+kernelAddress+" main1\n127.0.0.1 sub1\n")
	b.before = func(pid int) {
		out, err := exec.Command("nsenter", "-t", strconv.Itoa(pid), "-n", "ip", "addr", "add", kernelAddress+"/32",
			"dev", "lo").CombinedOutput()
		if err != nil {
			t.Fatalf("give the container an address: %v: %s", err, out)
		}
	}
	if change != nil {
		change(b)
	}
	client := b.start().connect()
	await(t, watch(t, client), "ready", func(e link.Event) bool { return e.Ready })
	return b, client
}

// clients are the two kinds of ssh that images have.
var clients = map[string]string{"OpenSSH": "ssh", "the guest's own": "/.slipway/guest ssh"}

func TestKernelsReachEachOtherBySSH(t *testing.T) {
	_, client := newKernel(t, nil)
	for name, ssh := range clients {
		shell := func(t *testing.T, script, stdin string) result {
			t.Helper()
			got, err := tryRun(t, client, session.ExecRequest{Command: []string{"bash", "-c",
				strings.ReplaceAll(script, "ssh ", ssh+" ")}}, stdin)
			must(t, err)
			return got
		}
		t.Run("with "+name, func(t *testing.T) {
			for _, c := range []struct {
				name, script, stdin string
				want                result
			}{
				{"a command runs as the work user in its home",
					`ssh main1 'id -un; id -u; pwd; grep CapEff /proc/self/status | cut -f 2'`, "",
					result{out: "work\n1234\n/home/work\n0000000000000000\n"}},
				{"the session's variables are there", `ssh main1 'echo $GREETING'`, "", result{out: "good day\n"}},
				{"an exit code comes back", `ssh main1 'exit 7'`, "", result{code: 7}},
				{"a signal's code comes back", `ssh main1 'kill -TERM $$'`, "", result{code: 143}},
				{"output and errors stay apart", `ssh main1 'echo out; echo err >&2'`, "",
					result{out: "out\n", err: "err\n"}},
				{"input goes along and ends", `ssh main1 'cat; echo end'`, "some\nlines\n",
					result{out: "some\nlines\nend\n"}},
				{"no input is none", `ssh -n main1 cat`, "not for it", result{}},
				{"a script on input runs without a terminal", `ssh -T main1`, "echo from a script\nexit 5\n",
					result{out: "from a script\n", code: 5}},
				{"options and a user may be named",
					`ssh -o BatchMode=yes -o ConnectTimeout=5 -q work@main1 -p 2222 echo yes`, "",
					result{out: "yes\n"}},
				{"there is a terminal for who insists",
					`ssh -tt main1 'test -t 0 && test -t 1 && stty -a | grep -c "rows"' < /dev/null`, "",
					result{out: "1\r\n"}},
			} {
				t.Run(c.name, func(t *testing.T) {
					if got := shell(t, c.script, c.stdin); got != c.want {
						t.Errorf("got %+v, want %+v", got, c.want)
					}
				})
			}
			t.Run("much goes both ways unharmed", func(t *testing.T) {
				data := strings.Repeat("0123456789abcdef", 400_000)
				want := fmt.Sprintf("%x", sha256.Sum256([]byte(data)))
				got := shell(t, `ssh main1 cat | sha256sum`, data)
				if !strings.HasPrefix(got.out, want) {
					t.Errorf("%d bytes came back as %+v", len(data), got)
				}
			})
			t.Run("another user is refused", func(t *testing.T) {
				if got := shell(t, `ssh -o BatchMode=yes root@main1 true`, ""); got.code != 255 || got.err == "" {
					t.Errorf("got %+v", got)
				}
			})
			t.Run("a host that answers with another key is refused", func(t *testing.T) {
				if got := shell(t, `ssh -o BatchMode=yes -p 2222 -o HostName=`+kernelAddress+` elsewhere true`,
					""); got.code != 255 || got.err == "" {
					t.Errorf("got %+v", got)
				}
			})
			t.Run("a command ends when its caller is gone", func(t *testing.T) {
				got := shell(t,
					`ssh main1 'echo $$; exec sleep 1000' > /tmp/pid & for i in $(seq 100); do
				test -s /tmp/pid && break; sleep 0.1; done; kill -9 $!
for i in $(seq 100); do kill -0 $(cat /tmp/pid) 2>/dev/null || { echo gone; exit; }; sleep 0.1; done; echo stays`, "")
				if !strings.HasSuffix(got.out, "gone\n") {
					t.Errorf("got %+v", got)
				}
			})
		})
	}
	t.Run("and only in their private network", func(t *testing.T) {
		if conn, err := client.Dial(t.Context(), 2222); err == nil {
			conn.Close()
			t.Error("the kernel takes ssh on its loopback too")
		}
	})
	t.Run("an interactive shell takes keys, a new size and leaves with its code", func(t *testing.T) {
		for name, ssh := range clients {
			t.Run(name, func(t *testing.T) {
				s := open(t, client, session.TerminalRequest{Command: strings.Fields(ssh + " main1"), Cols: 91,
					Rows: 31})
				s.expect("$")
				s.typeLine("stty size; echo ssh-$((40+2))")
				s.expect("31 91")
				s.expect("ssh-42")
				s.Resize(100, 40)
				s.typeLine("for i in $(seq 100); do stty size | grep -q '40 100' && echo re$((1))sized && break; " +
					"sleep 0.1; done")
				s.expect("re1sized")
				s.typeLine("exit 9")
				if code := s.ended(); code != 9 {
					t.Errorf("got code %d", code)
				}
			})
		}
	})
}

func TestSSHFilesAreThePersons(t *testing.T) {
	_, client := newKernel(t, nil)
	got := run(t, client, "bash", "-c",
		`cd ~/.ssh && stat -c '%n %a %u' . config id_slipway known_hosts; grep -c 'main1 sub1' config; grep -c `+
			`'^\[main1\]:2222,\[sub1\]:2222 ssh-ed25519 ' known_hosts; head -1 id_slipway`)
	want := ". 700 1234\nconfig 600 1234\nid_slipway 600 1234\nknown_hosts 600 1234\n1\n1\n-----BEGIN OPENSSH " +
		"PRIVATE KEY-----\n"
	if got.out != want {
		t.Errorf("got %q, want %q", got.out+got.err, want)
	}
	if got := run(t, client, "bash", "-c", "env; cat /proc/self/environ").out; strings.Contains(got, "PRIVATE") {
		t.Error("a key is in the environment")
	}
	if got := run(t, client, "cat", "/.slipway/config.json"); got.code == 0 {
		t.Error("the person reads the guest's configuration")
	}
}

func TestOwnSSHConfigurationStays(t *testing.T) {
	_, client := newKernel(t, func(b *box) {
		b.write("home/work/.ssh/config", "Host lab\n    HostName lab.example.org\n")
		b.write("home/work/.ssh/known_hosts", "lab.example.org ssh-ed25519 AAAA\n")
	})
	got := run(t, client, "bash", "-c", "tail -2 ~/.ssh/config; head -1 ~/.ssh/known_hosts; ssh main1 echo works")
	want := "Host lab\n    HostName lab.example.org\nlab.example.org ssh-ed25519 AAAA\nworks\n"
	if got.out != want {
		t.Errorf("got %q, want %q", got.out+got.err, want)
	}
}

func TestLinkedHomeLeadsNowhere(t *testing.T) {
	outside := t.TempDir() // root's, as a mounted folder may be
	must(t, os.Chmod(outside, 0o755))
	b, client := newKernel(t, func(b *box) {
		b.binds = append(b.binds, outside+":/outside")
		must(t, os.MkdirAll(b.root+"/home/work", 0o755))
		must(t, os.Symlink("/outside", b.root+"/home/work/.ssh"))
	})
	events := watch(t, client)
	trouble := await(t, events, "the trouble", func(e link.Event) bool { return e.Error != nil })
	if trouble.Error.Code != "session_start_no-ssh" {
		t.Errorf("got %+v", trouble.Error)
	}
	if files, err := os.ReadDir(outside); err != nil || len(files) > 0 {
		t.Errorf("written through the link: %v, %v", files, err)
	}
	if got := run(t, client, "echo", "goes on").out; got != "goes on\n" {
		t.Errorf("got %q; %s", got, b.output.String())
	}
}

func TestStrangersAreRefused(t *testing.T) {
	_, client := newKernel(t, nil)
	got := run(t, client, "bash", "-c",
		`cd /tmp && ssh-keygen -q -t ed25519 -N '' -f other && ssh -F none -o BatchMode=yes -o `+
			`StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -i other -p 2222 work@main1 true`)
	if got.code != 255 || !strings.Contains(got.err, "Permission denied") {
		t.Errorf("got %+v", got)
	}
	t.Run("and one that says nothing does not disturb", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		stream, err := client.Exec(ctx,
			session.ExecRequest{Command: []string{"bash", "-c", "exec 3<>/dev/tcp/main1/2222; echo open; sleep 100"}})
		must(t, err)
		defer stream.Close()
		frame, err := terminal.NewConn(stream).ReadFrame()
		if err != nil || !strings.Contains(string(frame.Payload), "open") {
			t.Fatalf("got %v, %v", frame, err)
		}
		if got := run(t, client, "ssh", "main1", "echo", "works"); got.out != "works\n" {
			t.Errorf("got %+v", got)
		}
	})
}
