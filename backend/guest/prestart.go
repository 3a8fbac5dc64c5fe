package guest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"sync"

	"slipway/backend/guest/link"
	"slipway/backend/session"
)

const (
	// actionFailed is the code of a container in which an action failed that is not a program.
	actionFailed = 1
	// maxAppended is the size of the largest file that an action adds to.
	maxAppended = 4 << 20
)

// Prepare does what comes before the start of a server, in order, and writes the output to log. It stops at the first
// failure and returns why, as app_start_exited, and the exit code for the container. Once ctx ends, it kills a program
// that runs.
func Prepare(ctx context.Context, processes Processes,
	actions []session.StartAction, log io.Writer) (int, *session.Error) {
	a := actor{processes, log}
	for i, action := range actions {
		code, err := a.do(ctx, action)
		if err == nil {
			continue
		}
		what, name := session.AsError(err, session.CodeAppExited), action.Action
		if action.Path != "" {
			name += " of " + action.Path
		}
		return code, session.NewError(session.CodeAppExited,
			fmt.Sprintf("%s, action %d before the start, failed: %s", name, i+1, what.Message), what.Hint)
	}
	return 0, nil
}

// SetUp runs a script with the image's shell, as the person, and writes its output to log. It returns why it failed, as
// app_start_exited, and its exit code. Once ctx ends, the script is killed, which is no failure.
func SetUp(ctx context.Context, processes Processes, script string, log io.Writer) (int, *session.Error) {
	if script == "" {
		return 0, nil
	}
	argv := processes.Script(script)
	if len(argv) == 0 {
		return codeNotFound, noShell(session.CodeNoShell)
	}
	fmt.Fprintln(log, "slipway: the setup begins")
	code, err := actor{processes, log}.run(ctx, argv)
	switch {
	case ctx.Err() != nil:
		return actionFailed, nil
	case err != nil:
		what := session.AsError(err, session.CodeAppExited)
		return code, session.NewError(session.CodeAppExited,
			"The setup failed: "+strings.TrimRight(what.Message, ".")+".", what.Hint)
	}
	fmt.Fprintln(log, "slipway: the setup is done")
	return 0, nil
}

type actor struct {
	processes Processes
	log       io.Writer
}

func (a actor) do(ctx context.Context, action session.StartAction) (int, error) {
	if ctx.Err() != nil {
		return actionFailed, ctx.Err()
	}
	mode, _ := action.FileMode()
	switch action.Action {
	case session.ActionRun:
		return a.run(ctx, action.Command)
	case session.ActionLog:
		fmt.Fprintln(a.log, action.Message)
		return 0, nil
	case session.ActionMkdir:
		return actionFailed, a.call(ctx, link.FileCall{Op: link.FileMkdir, Path: session.FilePath(action.Path),
			All: true}, nil)
	case session.ActionTempFile:
		path := "/tmp/slipway-" + strings.ToLower(rand.Text()[:8]) + ".py"
		fmt.Fprintln(a.log, "write_tempfile:", path)
		return actionFailed, a.write(ctx, session.FilePath(path), action.Body, mode)
	case session.ActionWrite:
		body, path := action.Body, session.FilePath(action.Path)
		if action.Append {
			before, err := a.read(ctx, path)
			if err != nil {
				return actionFailed, err
			}
			body = before + body
		}
		return actionFailed, a.write(ctx, path, body, mode)
	}
	return actionFailed, session.NewError(session.CodeGuestInvalid, "The guest does not know this action.",
		"Start the session again with this version of Slipway.")
}

// run runs a program and returns its exit code, with an error unless it is 0.
func (a actor) run(ctx context.Context, argv []string) (int, error) {
	process, err := a.processes.Start(Command{Argv: argv})
	if err != nil {
		return codeForbidden, err
	}
	defer context.AfterFunc(ctx, process.Kill)()
	var last tail
	var outputs sync.WaitGroup
	for _, from := range [...]io.Reader{process.Stdout(), process.Stderr()} {
		outputs.Go(func() { _, _ = io.Copy(io.MultiWriter(&last, a.log), from) })
	}
	outputs.Wait()
	code := process.Wait()
	if code == 0 {
		return 0, nil
	}
	return code, session.NewError(session.CodeAppExited,
		fmt.Sprintf("%s ended with code %d%s", argv[0], code, last.sentence()), "Read the session's log.")
}

// call makes a call for files, as the person.
func (a actor) call(ctx context.Context, call link.FileCall, content io.Reader) error {
	conn, err := a.processes.Files(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	return link.CallFiles(conn, call, content, nil)
}

// write replaces a file.
func (a actor) write(ctx context.Context, path session.FilePath, body string, mode uint32) error {
	up := session.Upload{Path: path, Key: "prestart"}
	if err := a.call(ctx, link.FileCall{Op: link.FileWrite, Upload: &up}, strings.NewReader(body)); err != nil {
		return err
	}
	return a.call(ctx, link.FileCall{Op: link.FileFinish, Finish: &session.FinishRequest{Upload: up,
		Finish: session.Finish{Size: int64(len(body)), Conflict: session.ConflictReplace, Mode: mode}}}, nil)
}

// read returns the content of a file; empty if there is none.
func (a actor) read(ctx context.Context, path session.FilePath) (string, error) {
	conn, err := a.processes.Files(ctx)
	if err != nil {
		return "", err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	file, err := link.ReadFile(conn, session.ReadRequest{Path: path})
	if session.CodeOf(err) == session.CodeFileNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	var content bytes.Buffer
	if _, err := io.Copy(&content, io.LimitReader(file, maxAppended+1)); err != nil {
		return "", err
	}
	if content.Len() > maxAppended {
		return "", session.NewError(session.CodeFileInvalid,
			fmt.Sprintf("%q has more than 4 MiB, the most that an action adds to.", path), "Write another file.")
	}
	return content.String(), nil
}
