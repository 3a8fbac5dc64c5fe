//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"slipway/build/bench/link"
)

// lab is a pair of namespaces with a path between them and a target behind it.
type lab struct {
	s     settings
	local bool // both sides in the near namespace
	path  *process
	goal  *process
}

// process is one part that runs.
type process struct {
	cmd *exec.Cmd
}

// openLab makes the namespaces, the keys and the target.
func openLab(ctx context.Context, up, down link.Direction, local bool) (l *lab, err error) {
	folder, err := os.MkdirTemp("", "tunnel-bench-")
	if err != nil {
		return nil, err
	}
	pid := os.Getpid()
	l = &lab{local: local, s: settings{
		Folder: folder, Near: fmt.Sprintf("slw-near-%d", pid), Far: fmt.Sprintf("slw-far-%d", pid),
		FarHost: link.FarAddress, Up: up, Down: down,
	}}
	if local {
		l.s.FarHost = "127.0.0.1"
	}
	defer func() {
		if err != nil {
			_ = l.close()
		}
	}()
	if err := makeKeys(folder); err != nil {
		return l, err
	}
	if l.path, err = l.start(ctx, "", "part-path", l.s); err != nil {
		return l, err
	}
	l.goal, err = l.start(ctx, l.farSpace(), "part-target", l.s)
	return l, err
}

func (l *lab) farSpace() string {
	if l.local {
		return l.s.Near
	}
	return l.s.Far
}

func (l *lab) close() error {
	var failed error
	for _, p := range []*process{l.goal, l.path} {
		if p != nil {
			failed = errors.Join(failed, p.stop())
		}
	}
	killAll(l.s.Near, l.s.Far)
	return errors.Join(failed, link.Remove(l.s.Near, l.s.Far), os.RemoveAll(l.s.Folder))
}

// killAll ends what is left in the namespaces, which are this program's own: a
// session of sshd outlives its server.
func killAll(spaces ...string) {
	for _, space := range spaces {
		out, err := exec.Command("ip", "netns", "pids", space).Output()
		if err != nil {
			continue
		}
		for _, word := range strings.Fields(string(out)) {
			if pid, err := strconv.Atoi(word); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// makeKeys writes a throw-away certificate for TLS and keys for ssh.
func makeKeys(folder string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"bench"},
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	for name, block := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: cert},
		"key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	for _, name := range []string{"host", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(folder, name)).
			CombinedOutput(); err != nil {
			return fmt.Errorf("ssh-keygen: %w: %s", err, out)
		}
	}
	return nil
}

// command makes a command that runs in a namespace, this program's own when the
// name is empty.
func (l *lab) command(ctx context.Context, space string, words ...string) *exec.Cmd {
	if space != "" {
		words = append([]string{"ip", "netns", "exec", space}, words...)
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// start starts a part and waits until it is ready.
func (l *lab) start(ctx context.Context, space, part string, s settings) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	setting, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	cmd := l.command(ctx, space, self, part, string(setting))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		return nil, errors.Join(fmt.Errorf("%s did not start: %q", part, line), err, p.stop())
	}
	return p, nil
}

func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(3*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	_ = p.cmd.Wait() // by a signal, as it should
	return nil
}

// memory returns what the process holds in memory, in bytes.
func (p *process) memory() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(status, []byte("VmRSS:"))
	fields := strings.Fields(string(rest))
	if len(fields) == 0 {
		return 0, errors.New("no VmRSS")
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	return kib << 10, err
}

// ask runs the client once.
func (l *lab) ask(ctx context.Context, s settings) (outcome, error) {
	var out outcome
	self, err := os.Executable()
	if err != nil {
		return out, err
	}
	setting, err := json.Marshal(s)
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Warm+s.Time+2*time.Minute)
	defer cancel()
	answer, err := l.command(ctx, l.s.Near, self, "part-client", string(setting)).Output()
	if err != nil {
		return out, fmt.Errorf("client: %w", err)
	}
	return out, json.Unmarshal(answer, &out)
}

// rig is one variant set up in a lab.
type rig struct {
	s     settings // with the addresses that lead through the variant
	parts []*process
}

// setUp starts what a variant needs.
func (l *lab) setUp(ctx context.Context, kind string) (r *rig, err error) {
	r = &rig{s: l.s}
	r.s.Kind = kind
	r.s.Bulk, r.s.Echo = "127.0.0.1:"+bulkPort, "127.0.0.1:"+echoPort
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	switch kind {
	case "raw":
		r.s.Bulk = l.s.FarHost + ":" + targetPort
		r.s.Echo = r.s.Bulk
		return r, nil
	case "ssh":
		return r, l.startSSH(ctx, r)
	}
	for _, each := range []struct{ space, part string }{{l.farSpace(), "part-far"}, {l.s.Near, "part-near"}} {
		p, err := l.start(ctx, each.space, each.part, r.s)
		if err != nil {
			return r, err
		}
		r.parts = append(r.parts, p)
	}
	return r, nil
}

func (r *rig) close() {
	for i := len(r.parts) - 1; i >= 0; i-- {
		_ = r.parts[i].stop()
	}
}

// startSSH starts a server of its own with throw-away keys, and a client that
// forwards both ports.
func (l *lab) startSSH(ctx context.Context, r *rig) error {
	folder := l.s.Folder
	key, err := os.ReadFile(filepath.Join(folder, "user.pub"))
	if err != nil {
		return err
	}
	config := strings.Join([]string{
		"Port " + sshPort, "HostKey " + filepath.Join(folder, "host"), "PidFile none", "UsePAM no", "StrictModes no",
		"AuthorizedKeysFile " + filepath.Join(folder, "authorized"), "PermitRootLogin prohibit-password",
		"LogLevel ERROR", "",
	}, "\n")
	for name, text := range map[string]string{"authorized": string(key), "sshd_config": config} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		return err
	}
	target := "127.0.0.1:" + targetPort
	for _, each := range [][]string{
		{l.farSpace(), "/usr/sbin/sshd", "-D", "-e", "-f", filepath.Join(folder, "sshd_config")},
		{l.s.Near, "ssh", "-N", "-F", "none", "-p", sshPort, "-i", filepath.Join(folder, "user"), "-o",
			"LogLevel=ERROR",
			"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "ConnectionAttempts=10", "-o",
			"ExitOnForwardFailure=yes",
			"-L", bulkPort + ":" + target, "-L", echoPort + ":" + target, "root@" + l.s.FarHost},
	} {
		cmd := l.command(ctx, each[0], each[1:]...)
		cmd.Stderr = nil // its sessions would hold it open
		if err := cmd.Start(); err != nil {
			return err
		}
		r.parts = append(r.parts, &process{cmd})
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		cmd := l.command(ctx, l.s.Near, "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/"+echoPort)
		cmd.Stderr = nil
		if cmd.Run() == nil {
			return nil
		}
	}
	return errors.New("ssh did not come up")
}
