package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"slipway/backend/session"
)

// asError converts any failure to an error for people. Internal errors are reported without their text.
func asError(err error) *session.Error {
	var e *session.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.Canceled):
		return session.WrapError(err, session.CodeRequestCancelled, "The request was cancelled.", "Try again.")
	case errors.Is(err, context.DeadlineExceeded):
		return session.WrapError(err, session.CodeOperationTimeout, "It timed out.", "Try again.")
	}
	return session.WrapError(err, session.CodeServerInternal, "Something went wrong inside Slipway.",
		"The log file says more: slipway doctor names it.")
}

// problemOf is like asError but returns nil for nil.
func problemOf(err error) *session.Error {
	if err == nil {
		return nil
	}
	return asError(err)
}

// fail writes err as a Problem. Only internal errors are logged.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := asError(err)
	status := e.Code.Status()
	if status == http.StatusInternalServerError {
		s.log.Error("a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	writeJSON(w, status, e)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	text, _ := encode(value) // it is of one of the types of the API, and so can be encoded
	_, _ = w.Write(text)     // the client may be gone
}

// encode encodes an answer as the standard library does, but for empty lists and maps in place of nil ones, so that a
// client never gets null where it expects a list.
func encode(value any) ([]byte, error) {
	var text bytes.Buffer
	err := json.MarshalWrite(&text, value, jsonv1.DefaultOptionsV1(), json.FormatNilSliceAsNull(false),
		json.FormatNilMapAsNull(false), jsontext.EscapeForHTML(false))
	return text.Bytes(), err
}

// wrongMethod answers a request whose method is not among the allowed ones.
func (s *Server) wrongMethod(w http.ResponseWriter, r *http.Request, allowed string) {
	w.Header().Set("Allow", allowed)
	s.fail(w, r, session.NewError(session.CodeWrongMethod, fmt.Sprintf("%s is not possible here.", r.Method),
		"Possible: "+allowed+"."))
}

func wrongField(name, message, hint string) session.FieldError {
	return session.FieldError{Field: name, Kind: session.KindInvalid, Message: message, Hint: hint}
}

func badQuery(name, message, hint string) error {
	return session.Refused(session.CodeRequestInvalid, wrongField(name, message, hint))
}

// queryIn parses a query parameter, which is usual if it is absent. what completes the message if parse fails, such as
// "is not a time".
func queryIn[T any](r *http.Request, name string, usual T, parse func(string) (T, error), what,
	hint string) (T, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return usual, nil
	}
	value, err := parse(text)
	if err != nil {
		return usual, badQuery(name, fmt.Sprintf("%s=%s %s.", name, clip(text), what), hint)
	}
	return value, nil
}

// countIn parses a query parameter that is a whole number, 0 if it is absent.
func countIn(r *http.Request, name string) (int, error) {
	return queryIn(r, name, 0, func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if n < 0 {
			err = strconv.ErrRange
		}
		return n, err
	}, "is not a whole number", "Write 0 or more.")
}

// offsetIn parses a query parameter that is a position in a stream, 0 if it is absent.
func offsetIn(r *http.Request, name string) (uint64, error) {
	return queryIn(r, name, 0, func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) },
		"is not a whole number", "Use a whole number, or omit it.")
}

// flagIn parses a query parameter that is 1, 0 or absent.
func flagIn(r *http.Request, name string) (bool, error) {
	return queryIn(r, name, false, func(text string) (bool, error) {
		switch text {
		case "0", "false", "1", "true":
			return text == "1" || text == "true", nil
		}
		return false, strconv.ErrSyntax
	}, "must be 1 or 0", "Use 1, or omit it.")
}

func timeIn(r *http.Request, name string, usual time.Time) (time.Time, error) {
	return queryIn(r, name, usual, func(text string) (time.Time, error) { return time.Parse(time.RFC3339, text) },
		"is not a time", "Write for example 2031-05-01T12:00:00Z.")
}

// onlyGet reports whether a request is a GET, and answers others.
func (s *Server) onlyGet(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet {
		s.wrongMethod(w, r, http.MethodGet)
		return false
	}
	return true
}
