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

// Told returns an error for [Config] with which the command line prints problem unchanged.
func Told(problem session.Error) error { return &client.Refused{Problem: problem} }

// failure is an error of the command line itself.
type failure struct {
	problem session.Error
	exit    int
}

func (e *failure) Error() string { return e.problem.Error() }

// fail returns a failure with the usual exit code for its code.
func fail(code session.Code, message, hint string) error {
	return failAs(exitOf(code, code.Status()), code, message, hint)
}

func failAs(exit int, code session.Code, message, hint string) error {
	return &failure{session.Error{Code: code, Message: message, Hint: hint}, exit}
}

// usagef returns the failure of a wrong command line.
func usagef(format string, args ...any) error {
	return failAs(ExitUsage, session.CodeUsage, sentence(fmt.Sprintf(format, args...)),
		"Add --help to the command for its usage.")
}

// exitError ends the program with a code and prints nothing.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// exitWith returns err or, if that is nil, an error with an exit code other than 0.
func exitWith(code int, err error) error {
	if err == nil && code != 0 {
		return &exitError{code}
	}
	return err
}

// failedIf returns err or, if that is nil and failed is set, an error with the exit code [ExitFailure].
func failedIf(failed bool, err error) error {
	if failed {
		return exitWith(ExitFailure, err)
	}
	return err
}

// finish prints err and returns the exit code.
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
		_ = encoder.Encode(problem) // there is no other place to report it
		return code
	}
	if n := len(problem.Fields); n > 1 {
		problem.Message, problem.Hint = fmt.Sprintf("%d fields are wrong.", n), "" // each field has its own hint
	}
	fmt.Fprintf(p.Stderr, "slipway: %s\n", problem.Message)
	for _, field := range problem.Fields {
		if field.Message == problem.Message {
			continue // the only one, printed above
		}
		fmt.Fprintf(p.Stderr, "  %s: %s\n", field.Field, strings.TrimSpace(field.Message+" "+field.Hint))
	}
	if problem.Hint != "" {
		fmt.Fprintf(p.Stderr, "  %s\n", problem.Hint)
	}
	fmt.Fprintf(p.Stderr, "  (%s)\n", problem.Code)
	return code
}

// describe returns the problem that describes an error, and its exit code.
func describe(err error) (session.Error, int) {
	var refused *client.Refused
	var own *failure
	var about *session.Error
	switch {
	case errors.As(err, &refused):
		return refused.Problem, exitOf(refused.Problem.Code, cmp.Or(refused.Status, refused.Problem.Code.Status()))
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

// exitOf returns the exit code for a code with an HTTP status.
func exitOf(code session.Code, status int) int {
	byCode := map[session.Code]int{ // as shells do
		session.CodeProcessNotFound: ExitNoCommand, session.CodeProcessForbidden: ExitNoProgram}
	byStatus := map[int]int{http.StatusNotFound: ExitNotFound, http.StatusBadRequest: ExitInvalid,
		http.StatusUnprocessableEntity: ExitInvalid, http.StatusServiceUnavailable: ExitUnavailable}
	return cmp.Or(byCode[code], byStatus[status], ExitFailure)
}

// sentence capitalizes text and ends it with a full stop.
func sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.TrimSuffix(strings.ToUpper(text[:1])+text[1:], ".") + "."
}
