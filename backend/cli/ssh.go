package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"

	"github.com/gorilla/websocket"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/session"
)

func (p terminalCommands) sshCommand() *cobra.Command {
	var test bool
	cmd := &cobra.Command{Use: "ssh [-L …] [-R …] [-D …] [-N] [-t] SESSION [COMMAND…]",
		Short: "Log in to a session with this computer's ssh",
		Long: `Ssh runs the ssh of this computer with the options it needs to reach a session, with or
without slipway ssh-config install, and exits with its exit code. The image needs nothing for
ssh, sftp and scp. For rsync, the image needs rsync.`}
	flags := cmd.Flags()
	flags.StringArrayP("local", "L", nil,
		"forward a port here to one that the session reaches, as ssh does; repeatable")
	flags.StringArrayP("remote", "R", nil,
		"forward a port of the session's loopback to one reached from here; repeatable")
	flags.StringArrayP("dynamic", "D", nil,
		"be a SOCKS proxy into the session's network on this port; repeatable")
	flags.BoolP("no-command", "N", false, "run no command, only forward ports")
	flags.BoolP("tty", "t", false, "run the command in a terminal")
	flags.BoolP("verbose", "v", false, "print what ssh does")
	flags.BoolVar(&test, "test", false, "only test the login")
	flags.SetInterspersed(false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if test {
			return p.inSession(p.testSSH)(cmd, args)
		}
		var words []string // the flags have the letters of ssh's own
		flags.Visit(func(f *pflag.Flag) {
			if list, ok := f.Value.(pflag.SliceValue); ok {
				for _, value := range list.GetSlice() {
					words = append(words, "-"+f.Shorthand, value)
				}
			} else if f.Value.String() == "true" {
				words = append(words, "-"+f.Shorthand)
			}
		})
		return p.besideSession(func(ctx context.Context, c *caller, s api.Session, command []string) error {
			return p.runSSH(ctx, c, s, words, command)
		})(cmd, args)
	}
	return cmd
}

// runSSH runs this computer's ssh and returns with its exit code.
func (p terminalCommands) runSSH(ctx context.Context, c *caller, s api.Session, options, command []string) error {
	path, err := exec.LookPath("ssh")
	if err != nil {
		return failAs(ExitNoCommand, session.CodeConnectInvalid, "This computer has no ssh.",
			"Install OpenSSH's client, or use slipway attach.")
	}
	access, err := route.SSHAccess.At(string(s.ID)).Ask(ctx, c)
	if err != nil {
		return err
	}
	setup, err := route.SSHSetup.Ask(ctx, c)
	if err != nil {
		return err
	}
	if len(access.Names) == 0 {
		return fail(session.CodeSessionUnavailable, "ssh does not know of "+s.Name+" yet.",
			"Try again in a moment.")
	}
	args := slices.Concat([]string{"-F", setup.ConfigFile}, options, access.Names[len(access.Names)-1:], command)
	cmd := exec.Command(path, args...) //nolint:noctx // it ends by its own signals
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Stdin, p.raw.out, p.raw.err
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt) // they are for ssh, which shares the terminal
	err = cmd.Run()
	signal.Stop(interrupts)
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return &exitError{max(ended.ExitCode(), ExitFailure)}
	}
	return err
}

func (p terminalCommands) testSSH(ctx context.Context, c *caller, s api.Session, _ []string) error {
	test, err := route.SSHTest.At(string(s.ID)).Ask(ctx, c)
	if err != nil {
		return err
	}
	if !test.OK && test.Problem != nil && p.output != outputJSON {
		return &client.Refused{Problem: *test.Problem}
	}
	if err := p.print(test, func(w io.Writer) {
		how := ""
		if test.Own {
			how = ", by this computer's ssh too"
		}
		fmt.Fprintf(w, "%s can be logged in to%s; that took %d ms.\n", s.Name, how, test.ElapsedMs)
	}); err != nil {
		return err
	}
	if !test.OK {
		return &exitError{ExitFailure}
	}
	return nil
}

func (p terminalCommands) sshConfigCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "ssh-config [install | remove | show]",
		Short: "Set up ssh, scp, sftp, rsync and editors to find sessions by name",
		Long: `Ssh-config install adds one line to your ~/.ssh/config. It includes a file with an entry for
each session, which Slipway updates as sessions start, end and are renamed. Then ssh NAME
works, and so do scp, sftp, rsync and editors. Names that your own configuration already uses
keep their meaning; NAME.slipway always works.`,
		RunE: p.command(func(ctx context.Context, c *caller, _ []string) error { return p.showSSH(ctx, c) })}
	part := func(use, short string, work func(ctx context.Context, c *caller) error) {
		cmd.AddCommand(&cobra.Command{Use: use, Short: short,
			RunE: p.command(func(ctx context.Context, c *caller, _ []string) error { return work(ctx, c) })})
	}
	part("install", "Include the sessions in your configuration of ssh", func(ctx context.Context, c *caller) error {
		return p.setSSH(ctx, c, true, "Your ssh reaches sessions by their names now: %s includes %s.\n")
	})
	part("remove", "Take the sessions out of your configuration of ssh", func(ctx context.Context, c *caller) error {
		return p.setSSH(ctx, c, false, "Nothing of Slipway is in %s any more; slipway ssh works still, with %s.\n")
	})
	part("show", "Show what is set up, and the names of the sessions", p.showSSH)
	return cmd
}

func (p terminalCommands) setSSH(ctx context.Context, c *caller, installed bool, text string) error {
	return show(ctx, c, route.SSHUpdate.Body(api.SSHUpdate{Installed: installed}),
		func(w io.Writer, setup api.SSHSetup) { fmt.Fprintf(w, text, setup.PersonFile, setup.ConfigFile) })
}

func (p terminalCommands) showSSH(ctx context.Context, c *caller) error {
	return show(ctx, c, route.SSHSetup, func(w io.Writer, setup api.SSHSetup) {
		state := "no; slipway ssh-config install does it"
		if setup.Installed {
			state = "yes, in " + setup.PersonFile
		}
		fields(w, "Installed", state, "Configuration", setup.ConfigFile, "Key", setup.KeyFile,
			"Public key", setup.PublicKey)
		if len(setup.Hosts) > 0 {
			fmt.Fprintln(w)
			table(w, "SESSION,NAMES", setup.Hosts,
				func(h api.SSHHost) []string { return []string{h.Session, strings.Join(h.Names, ", ")} })
		}
	})
}

// sshProxyCommand carries one connection of ssh's between its standard streams and a session. ssh runs it by the
// configuration that the control plane keeps.
func (p terminalCommands) sshProxyCommand() *cobra.Command {
	var home, kernel string
	cmd := &cobra.Command{Use: "ssh-proxy SESSION", Short: "Forward an SSH connection (used by slipway ssh-config)",
		Hidden: true}
	cmd.Flags().StringVar(&home, "home", "", "Slipway's directory")
	cmd.Flags().StringVar(&kernel, "kernel", "", "container of a cluster")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p.useHome(home)
		return p.command(func(ctx context.Context, c *caller, args []string) error {
			at := route.SSHStream.At(args[0]).With("kernel", kernel).Flag("bulk", movesFiles(parentCommand()))
			conn, err := c.Dial(ctx, at.Target())
			if err != nil {
				return err
			}
			return p.carry(ctx, conn)
		})(cmd, args)
	}
	return cmd
}

// useHome has this run use a folder of its own.
func (p terminalCommands) useHome(home string) {
	if home == "" {
		return
	}
	env := p.Env
	p.Env = func(name string) string {
		if name == "SLIPWAY_HOME" {
			return home
		}
		return env(name)
	}
}

// carry copies between the standard streams and a WebSocket until either ends.
func (p terminalCommands) carry(ctx context.Context, conn *websocket.Conn) error {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	go func() {
		buffer := make([]byte, client.MessageBuffer)
		for {
			n, err := p.Stdin.Read(buffer)
			if n > 0 && conn.WriteMessage(websocket.BinaryMessage, buffer[:n]) != nil {
				return // the reader below sees why
			}
			if err != nil { // ssh has left
				_ = conn.Close()
				return
			}
		}
	}()
	for {
		kind, reader, err := conn.NextReader()
		if err != nil {
			return proxyEnd(err)
		}
		if kind == websocket.TextMessage {
			return readSocketProblem(reader)
		}
		if _, err := io.Copy(p.raw.out, reader); err != nil {
			return nil //nolint:nilerr // ssh has left
		}
	}
}

// proxyEnd is how the carrying ended: in good order where the session or ssh closed.
func proxyEnd(err error) error {
	if err := client.CloseProblem(err); !errors.Is(err, io.EOF) && !client.IsLost(err) {
		return err
	}
	return nil
}

// readSocketProblem reads the failure that a text message tells.
func readSocketProblem(reader io.Reader) error {
	problem := &client.Refused{}
	if err := json.NewDecoder(reader).Decode(&problem.Problem); err != nil {
		return &client.Lost{Err: err}
	}
	return problem
}

// movesFiles reports whether an ssh command, of these words, is there to move files. Without words it is taken to serve
// a person. sftp and scp end it with the subsystem, rsync with the program on the far side.
func movesFiles(words []string) bool {
	n := len(words)
	if n == 0 {
		return false
	}
	if words[n-1] == "sftp" && slices.Contains(words, "-s") {
		return true
	}
	for i, word := range words {
		first, rest, _ := strings.Cut(word, " ")
		if i > 0 && rest == "" && i+1 < n {
			rest = words[i+1]
		}
		if first == "rsync" && strings.HasPrefix(rest, "--server") || first == "scp" &&
			(strings.HasPrefix(rest, "-t") || strings.HasPrefix(rest, "-f")) {
			return true
		}
	}
	return false
}

// parentCommand returns the words of the command that started this program; none where the system does not tell them in
// a way that is cheap.
func parentCommand() []string {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/cmdline")
	if err != nil {
		return nil
	}
	var words []string
	for word := range bytes.SplitSeq(bytes.TrimSuffix(line, []byte{0}), []byte{0}) {
		words = append(words, string(word))
	}
	return words
}
