package cli

import (
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
	flags.StringArrayP("dynamic", "D", nil, "be a SOCKS proxy into the session's network on this port; repeatable")
	flags.BoolP("no-command", "N", false, "run no command, only forward ports")
	flags.BoolP("tty", "t", false, "run the command in a terminal")
	flags.BoolP("verbose", "v", false, "print what ssh does")
	flags.BoolVar(&test, "test", false, "only test the login")
	flags.SetInterspersed(false)
	return runs(cmd, func(cmd *cobra.Command, args []string) error {
		if test {
			return p.inSession(p.testSSH)(cmd, args)
		}
		var words []string // the flags have the letters of the options of ssh
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
	})
}

// runSSH runs the ssh of this computer and returns its exit code as an error.
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
		return fail(session.CodeSessionUnavailable, "ssh does not know of "+s.Name+" yet.", "Try again in a moment.")
	}
	args := slices.Concat([]string{"-F", setup.ConfigFile}, options, access.Names[len(access.Names)-1:], command)
	cmd := exec.Command(path, args...) //nolint:noctx // it ends by its own signals
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Stdin, p.raw.out, p.raw.err
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt) // ssh handles them: it shares the terminal
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
	if !test.OK && test.Problem != nil && p.output == outputTable {
		return &client.Refused{Problem: *test.Problem}
	}
	return failedIf(!test.OK, p.print(test, func(w io.Writer) {
		how := ""
		if test.Own {
			how = ", by this computer's ssh too"
		}
		fmt.Fprintf(w, "%s can be logged in to%s; that took %d ms.\n", s.Name, how, test.ElapsedMs)
	}))
}

func (p terminalCommands) sshConfigCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "ssh-config [install | remove | show]",
		Short: "Set up ssh, scp, sftp, rsync and editors to find sessions by name",
		Long: `Ssh-config install adds one line to your ~/.ssh/config. It includes a file with an entry for
each session, which Slipway updates as sessions start, end and are renamed. Then ssh NAME
works, and so do scp, sftp, rsync and editors. Names that your own configuration already uses
keep their meaning; NAME.slipway always works.`}
	change := func(use, short string, installed bool, text string) *cobra.Command {
		return asks(p.program, &cobra.Command{Use: use, Short: short}, "",
			route.SSHUpdate.Body(api.SSHUpdate{Installed: installed}),
			func(w io.Writer, setup api.SSHSetup) { fmt.Fprintf(w, text, setup.PersonFile, setup.ConfigFile) })
	}
	cmd.AddCommand(
		change("install", "Include the sessions in your SSH configuration", true,
			"Your ssh reaches sessions by their names now: %s includes %s.\n"),
		change("remove", "Remove the sessions from your SSH configuration", false,
			"%s no longer includes Slipway's sessions. slipway ssh still works, with %s.\n"),
		asks(p.program, &cobra.Command{Use: "show", Short: "Show what is set up, and the names of the sessions"}, "",
			route.SSHSetup, sshTable))
	return asks(p.program, cmd, "", route.SSHSetup, sshTable)
}

func sshTable(w io.Writer, setup api.SSHSetup) {
	state := "no; set it up with slipway ssh-config install"
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
}

// sshProxyCommand carries an SSH connection between its standard streams and a session. ssh runs it by the
// configuration that the control plane writes.
func (p terminalCommands) sshProxyCommand() *cobra.Command {
	var home, kernel string
	cmd := &cobra.Command{Use: "ssh-proxy SESSION", Short: "Forward an SSH connection (used by slipway ssh-config)",
		Hidden: true}
	cmd.Flags().StringVar(&home, "home", "", "Slipway's directory")
	cmd.Flags().StringVar(&kernel, "kernel", "", "container of a cluster")
	cmd.PreRun = func(*cobra.Command, []string) {
		env := p.Env
		p.Env = func(name string) string {
			if name == "SLIPWAY_HOME" && home != "" {
				return home
			}
			return env(name)
		}
	}
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		at := route.SSHStream.At(args[0]).With("kernel", kernel).Flag("bulk", movesFiles(parentCommand()))
		conn, err := c.Dial(ctx, at.Target())
		if err != nil {
			return err
		}
		return p.carry(ctx, conn)
	}))
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
				return // the reader below reports why
			}
			if err != nil { // ssh has ended
				_ = conn.Close()
				return
			}
		}
	}()
	for {
		kind, reader, err := conn.NextReader()
		if err != nil {
			if err := client.CloseProblem(err); !errors.Is(err, io.EOF) && !client.IsLost(err) {
				return err
			}
			return nil // the session or ssh closed it
		}
		if kind == websocket.TextMessage {
			problem := &client.Refused{}
			if err := json.NewDecoder(reader).Decode(&problem.Problem); err != nil {
				return &client.Lost{Err: err}
			}
			return problem
		}
		if _, err := io.Copy(p.raw.out, reader); err != nil {
			return nil //nolint:nilerr // ssh has ended
		}
	}
}

// movesFiles reports whether an ssh command copies files: sftp and scp end it with the subsystem, rsync with the remote
// program.
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

// parentCommand returns the command line of the parent process, or nil on systems without /proc.
func parentCommand() []string {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/cmdline")
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
}
