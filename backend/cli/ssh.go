package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"slipway/backend/api/route"
	"slipway/backend/client"

	"github.com/gorilla/websocket"
	"github.com/spf13/cobra"
)

// sshProxyCommand carries one connection of ssh's between its standard streams
// and a session. ssh runs it by the configuration that the control plane keeps.
func (p terminalCommands) sshProxyCommand() *cobra.Command {
	var home, kernel string
	cmd := &cobra.Command{
		Use:    "ssh-proxy SESSION",
		Short:  "Forward an SSH connection (used by slipway ssh-config)",
		Hidden: true,
	}
	cmd.Flags().StringVar(&home, "home", "", "Slipway's directory")
	cmd.Flags().StringVar(&kernel, "kernel", "", "container of a cluster")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p.useHome(home)
		ctx, cancel := interruptible(cmd.Context())
		defer cancel()
		c, err := p.connect(ctx)
		if err != nil {
			return err
		}
		conn, err := c.Dial(ctx,
			route.SSHStream.At(args[0]).With("kernel", kernel).Flag("bulk", carriesFiles()).Target())
		if err != nil {
			return err
		}
		return p.carry(ctx, conn)
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

// carriesFiles reports whether the ssh that runs this program was started to
// move files. Where that cannot be told it is taken to serve a person.
func carriesFiles() bool { return movesFiles(parentCommand()) }

// movesFiles judges the words of an ssh command: sftp and scp end it with the
// subsystem, rsync with the program on the far side.
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
