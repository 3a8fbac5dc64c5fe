//go:build linux

package main

import (
	"bufio"
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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v3/process"

	"slipway/build/bench/link"
	"slipway/build/bench/measure"
)

// lab is a pair of namespaces with a path between them and a target at its end.
type lab struct {
	s     settings
	local bool // both sides in the near namespace
	parts
}

// parts are running processes, in the order in which they were started.
type parts []*exec.Cmd

func newLab(s scenario) *lab {
	pid := os.Getpid()
	l := &lab{local: s.local, s: settings{
		Folder: measure.Get(os.MkdirTemp("", "tunnel-bench-")), Near: fmt.Sprintf("slw-near-%d", pid),
		Far: fmt.Sprintf("slw-far-%d", pid), FarHost: link.FarAddress, Up: s.up, Down: s.down, Cable: s.cable,
	}}
	switch {
	case s.local:
		l.s.FarHost = "127.0.0.1"
	case s.cable:
		l.s.FarHost = link.FarPlug
	}
	return l
}

func (l *lab) open(ctx context.Context) {
	makeKeys(l.s.Folder)
	l.parts = append(l.parts, l.start(ctx, "", "part-path", l.s))
	l.parts = append(l.parts, l.start(ctx, l.farSpace(), "part-target", l.s))
}

func (l *lab) farSpace() string {
	if l.local {
		return l.s.Near
	}
	return l.s.Far
}

func (l *lab) close() error {
	l.stop()
	killAll(l.s.Near, l.s.Far)
	return errors.Join(link.Remove(l.s.Near, l.s.Far), os.RemoveAll(l.s.Folder))
}

// killAll ends all processes in the namespaces: sessions of sshd outlive their server.
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

// makeKeys writes a temporary certificate for TLS and keys for ssh.
func makeKeys(folder string) {
	key := measure.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"bench"},
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	cert := measure.Get(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	private := measure.Get(x509.MarshalPKCS8PrivateKey(key))
	for name, block := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: cert},
		"key": {Type: "PRIVATE KEY", Bytes: private}} {
		measure.OK(os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600))
	}
	for _, name := range []string{"host", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(folder, name)).
			CombinedOutput(); err != nil {
			measure.Fail("ssh-keygen: %w: %s", err, out)
		}
	}
}

// command makes a command in a namespace; empty: this program's own.
func (l *lab) command(ctx context.Context, space string, words ...string) *exec.Cmd {
	if space != "" {
		words = append([]string{"ip", "netns", "exec", space}, words...)
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// part is this program as one of the processes of the measurement.
func (l *lab) part(ctx context.Context, space, part string, s settings) *exec.Cmd {
	return l.command(ctx, space, measure.Get(os.Executable()), part, string(measure.Get(json.Marshal(s))))
}

func (l *lab) start(ctx context.Context, space, part string, s settings) *exec.Cmd {
	cmd := l.part(ctx, space, part, s)
	out := measure.Get(cmd.StdoutPipe())
	measure.OK(cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		stop(cmd)
		measure.OK(fmt.Errorf("%s did not start: %q", part, line), err)
	}
	return cmd
}

func stop(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(3*time.Second, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait() // by a signal, as it should
}

func (p *parts) stop() {
	for _, cmd := range slices.Backward(*p) {
		stop(cmd)
	}
}

// memory returns the memory of each part in bytes.
func (p *parts) memory() (all []int64) {
	for _, cmd := range *p {
		all = append(all, measure.Get(measure.Memory(cmd.Process.Pid, "VmRSS")))
	}
	return all
}

// processor returns the processor time that the parts have used, in seconds.
func (p *parts) processor() (seconds float64) {
	for _, cmd := range *p {
		of := measure.Get(process.NewProcess(int32(cmd.Process.Pid)))
		times := measure.Get(of.Times())
		seconds += times.User + times.System
	}
	return seconds
}

func (l *lab) ask(ctx context.Context, s settings) (out outcome) {
	ctx, cancel := context.WithTimeout(ctx, s.Warm+s.Time+2*time.Minute)
	defer cancel()
	measure.OK(json.Unmarshal(measure.Get(l.part(ctx, l.s.Near, "part-client", s).Output()), &out))
	return out
}

// rig is one variant in a lab.
type rig struct {
	s settings // with the addresses that lead through the variant
	parts
}

func (l *lab) setUp(ctx context.Context, r *rig, kind string) {
	r.s = l.s
	r.s.Kind = kind
	r.s.Bulk, r.s.Echo = "127.0.0.1:"+bulkPort, "127.0.0.1:"+echoPort
	switch kind {
	case "raw":
		r.s.Bulk = l.s.FarHost + ":" + targetPort
		r.s.Echo = r.s.Bulk
	case "ssh":
		l.startSSH(ctx, r)
	default:
		r.parts = append(r.parts, l.start(ctx, l.farSpace(), "part-far", r.s))
		r.parts = append(r.parts, l.start(ctx, l.s.Near, "part-near", r.s))
	}
}

// startSSH starts a server with temporary keys, and a client that forwards both ports.
func (l *lab) startSSH(ctx context.Context, r *rig) {
	folder := l.s.Folder
	key := measure.Get(os.ReadFile(filepath.Join(folder, "user.pub")))
	config := strings.Join([]string{
		"Port " + sshPort, "HostKey " + filepath.Join(folder, "host"), "PidFile none", "UsePAM no", "StrictModes no",
		"AuthorizedKeysFile " + filepath.Join(folder, "authorized"), "PermitRootLogin prohibit-password",
		"LogLevel ERROR", "",
	}, "\n")
	for name, text := range map[string]string{"authorized": string(key), "sshd_config": config} {
		measure.OK(os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	measure.OK(os.MkdirAll("/run/sshd", 0o755))
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
		measure.OK(cmd.Start())
		r.parts = append(r.parts, cmd)
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		cmd := l.command(ctx, l.s.Near, "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/"+echoPort)
		cmd.Stderr = nil
		if cmd.Run() == nil {
			return
		}
	}
	measure.Fail("ssh did not come up")
}
