package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"slipway/backend/client"
	"slipway/backend/daemon"
	"slipway/backend/session"
)

// The exit codes of every command. run --wait of a batch session, exec, attach and run with a terminal exit with the
// code of the command or shell instead.
const (
	ExitOK          = 0
	ExitFailure     = 1   // anything that has no code of its own
	ExitUsage       = 2   // the command line is wrong
	ExitNotFound    = 3   // no such session, app or image
	ExitInvalid     = 4   // the spec has values that are wrong
	ExitUnavailable = 5   // the control plane, or what it needs, does not answer
	ExitTimeout     = 124 // --wait-timeout passed
	ExitNoResult    = 125 // the session ended and its command has no exit code
	ExitNoProgram   = 126 // exec: the command cannot be executed
	ExitNoCommand   = 127 // exec: there is no such command
	ExitInterrupted = 130 // ended by Ctrl-C
)

const exitCodesHelp = `Exit codes: 0 success, 1 failure, 2 wrong command line, 3 not found, 4 wrong session spec,
5 Slipway is not running, 124 --wait-timeout passed, 125 the session ended without an exit code
of its command, 126 and 127 the command cannot be run or was not found, 130 interrupted.
run --wait, exec and attach exit with the exit code of the command.`

// Told makes an error of a problem that [Config.Serve] wants told as it is.
func Told(problem session.Error) error { return &client.Refused{Problem: problem} }

// failure is a failure that the command line itself found.
type failure struct {
	problem session.Error
	exit    int
}

func (e *failure) Error() string { return e.problem.Error() }

// fail is a failure with the exit code of all failures with its code.
func fail(code session.Code, message, hint string) error {
	return failAs(exitOf(code, code.Status()), code, message, hint)
}

func failAs(exit int, code session.Code, message, hint string) error {
	return &failure{session.Error{Code: code, Message: message, Hint: hint}, exit}
}

// usagef is a wrong command line.
func usagef(format string, args ...any) error {
	return failAs(ExitUsage, session.CodeUsage, sentence(fmt.Sprintf(format, args...)),
		"Add --help to the command for its usage.")
}

// exitError ends the program with a code and prints nothing: all was said.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// finish prints err, if it needs to be, and returns the exit code.
func (p *program) finish(err error) int {
	var silent *exitError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &silent):
		return silent.code
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	}
	problem, code := describe(err)
	if p.output == outputJSON {
		encoder := json.NewEncoder(p.Stderr)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(problem) // nowhere else to say it
		return code
	}
	if n := len(problem.Fields); n > 1 {
		problem.Message, problem.Hint = fmt.Sprintf("%d fields are wrong.", n), "" // each has its own
	}
	fmt.Fprintf(p.Stderr, "slipway: %s\n", problem.Message)
	for _, field := range problem.Fields {
		if field.Message == problem.Message {
			continue // it is the only one and was just said
		}
		fmt.Fprintf(p.Stderr, "  %s: %s\n", field.Field, strings.TrimSpace(field.Message+" "+field.Hint))
	}
	if problem.Hint != "" {
		fmt.Fprintf(p.Stderr, "  %s\n", problem.Hint)
	}
	fmt.Fprintf(p.Stderr, "  (%s)\n", problem.Code)
	return code
}

// describe turns any failure into a problem and its exit code.
func describe(err error) (session.Error, int) {
	var told *client.Refused
	var own *failure
	var about *session.Error
	switch {
	case errors.As(err, &told):
		return told.Problem, exitOf(told.Problem.Code, cmp.Or(told.Status, told.Problem.Code.Status()))
	case errors.As(err, &own):
		return own.problem, own.exit
	case errors.As(err, &about):
		exit := ExitFailure
		if errors.Is(err, client.ErrNotStarted) {
			exit = ExitUnavailable
		}
		return session.Error{Code: about.Code, Message: about.Message, Hint: about.Hint}, exit
	case errors.Is(err, daemon.ErrNotRunning):
		return session.Error{Code: session.CodeAgentNotFound, Message: "No agent runs on this machine.",
			Hint: "Start it: slipway agent start"}, ExitUnavailable
	case errors.Is(err, client.ErrNotServing), client.IsLost(err):
		return session.Error{Code: session.CodeServerUnreachable, Message: "The control plane does not answer.",
			Hint: "slipway doctor says why; slipway serve starts it."}, ExitUnavailable
	}
	return session.Error{Code: session.CodeCommandFailed, Message: sentence(err.Error())}, ExitFailure
}

// exitOf is the exit code of a failure with an HTTP status.
func exitOf(code session.Code, status int) int {
	byCode := map[session.Code]int{ // as shells do
		session.CodeProcessNotFound: ExitNoCommand, session.CodeProcessForbidden: ExitNoProgram}
	byStatus := map[int]int{http.StatusNotFound: ExitNotFound, http.StatusBadRequest: ExitInvalid,
		http.StatusUnprocessableEntity: ExitInvalid, http.StatusServiceUnavailable: ExitUnavailable}
	return cmp.Or(byCode[code], byStatus[status], ExitFailure)
}

// sentence begins text with a capital letter and ends it with a stop.
func sentence(text string) string {
	if text == "" {
		return text
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}
