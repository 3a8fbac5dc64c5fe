package guest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	"golang.org/x/term"
)

const codeSSH = 255

// sshMain is a small ssh for commands and shells on other kernels of the session. It returns the exit code.
func sshMain(args []string) int {
	call, err := parseSSH(args)
	if err == nil && call.version {
		fmt.Fprintln(os.Stderr, "slipway-guest ssh")
		return 0
	}
	if err == nil {
		err = call.configure(os.Getenv("HOME"))
	}
	var client *ssh.Client
	if err == nil {
		client, err = call.dial()
	}
	if err == nil {
		defer client.Close()
		var code int
		if code, err = call.run(client); err == nil {
			return code
		}
	}
	fmt.Fprintln(os.Stderr, "ssh:", err)
	return codeSSH
}

// configure reads the options that are not on the command line from ~/.ssh.
func (c *sshCall) configure(home string) error {
	c.dir = filepath.Join(home, ".ssh")
	text, err := os.ReadFile(filepath.Join(c.dir, "config"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	c.apply(sshConfig(string(text), c.host), home)
	c.fill()
	return nil
}

// dial connects and authenticates both sides.
func (c *sshCall) dial() (*ssh.Client, error) {
	var signers []ssh.Signer
	for _, path := range append(c.keys, filepath.Join(c.dir, "id_ed25519"), filepath.Join(c.dir, "id_ecdsa"),
		filepath.Join(c.dir, "id_rsa")) {
		if data, err := os.ReadFile(path); err == nil {
			if signer, err := ssh.ParsePrivateKey(data); err == nil {
				signers = append(signers, signer)
			}
		}
	}
	config := &ssh.ClientConfig{
		User: c.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signers...)}, Timeout: c.timeout,
		ClientVersion: "SSH-2.0-Slipway", HostKeyCallback: c.checkHost,
	}
	return ssh.Dial("tcp", net.JoinHostPort(c.target, strconv.Itoa(c.port)), config)
}

// checkHost accepts a host whose key is known, or any host if the command line disables the check.
func (c *sshCall) checkHost(_ string, remote net.Addr, key ssh.PublicKey) error {
	if c.unsafe {
		return nil
	}
	known, err := knownhosts.New(filepath.Join(c.dir, "known_hosts"))
	if errors.Is(err, os.ErrNotExist) {
		known, err = knownhosts.New()
	}
	if err != nil {
		return err
	}
	if err := known(net.JoinHostPort(c.host, strconv.Itoa(c.port)), remote, key); err != nil {
		return fmt.Errorf("the key of %s is not in ~/.ssh/known_hosts: %w", c.host, err)
	}
	return nil
}

// run runs the command or a shell with this program's streams.
func (c *sshCall) run(client *ssh.Client) (int, error) {
	s, err := client.NewSession()
	if err != nil {
		return 0, err
	}
	defer s.Close()
	s.Stdout, s.Stderr, s.Stdin = os.Stdout, os.Stderr, os.Stdin
	if c.noInput {
		s.Stdin = strings.NewReader("")
	}
	if c.wantsTTY(term.IsTerminal(0)) {
		restore, err := startTTY(s)
		if err != nil {
			return 0, err
		}
		defer restore()
	}
	if c.command == "" {
		err = s.Shell()
	} else {
		err = s.Start(c.command)
	}
	if err != nil {
		return 0, fmt.Errorf("%s refuses: %w", c.host, err)
	}
	err = s.Wait()
	if exit, ok := errors.AsType[*ssh.ExitError](err); ok {
		return exit.ExitStatus(), nil
	}
	if err != nil {
		return 0, fmt.Errorf("the connection was lost: %w", err)
	}
	return 0, nil
}

// startTTY requests a terminal like this one and makes this one raw until restore is called.
func startTTY(s *ssh.Session) (restore func(), err error) {
	cols, rows := ttySize()
	if err := s.RequestPty(cmp.Or(os.Getenv("TERM"), "xterm-256color"), rows, cols, ssh.TerminalModes{}); err != nil {
		return nil, fmt.Errorf("no terminal: %w", err)
	}
	if !term.IsTerminal(0) { // -t without a terminal here, as in a pipeline
		return func() {}, nil
	}
	old, err := term.MakeRaw(0)
	if err != nil {
		return nil, err
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	go func() {
		for range resized {
			cols, rows := ttySize()
			_ = s.WindowChange(rows, cols) // s.Wait reports a lost connection
		}
	}()
	return func() {
		signal.Stop(resized)
		close(resized)
		_ = term.Restore(0, old)
	}, nil
}

func ttySize() (cols, rows int) {
	cols, rows, err := term.GetSize(0)
	if err != nil || cols == 0 || rows == 0 {
		return defaultCols, defaultRows
	}
	return cols, rows
}

func setupMain([]string) int {
	if err := setUpSSH(io.LimitReader(os.Stdin, 1<<20), os.Getenv("HOME")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
