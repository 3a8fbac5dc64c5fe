package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"slipway/backend/api/route"
	"slipway/backend/session"
)

// asError turns any failure into one that a person can read. What is none of
// ours is told as an internal error, without its text.
func asError(err error) *session.Error {
	var e *session.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.Canceled):
		return session.WrapError(err, session.CodeRequestCancelled, "The request was cancelled.", "Try again.")
	case errors.Is(err, context.DeadlineExceeded):
		return session.WrapError(err, session.CodeOperationTimeout, "It took too long.", "Try again.")
	}
	return session.WrapError(err, session.CodeServerInternal, "Something went wrong inside Slipway.",
		"The log file says more: slipway doctor names it.")
}

// fail writes err as a Problem. Only what is our own fault is logged.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	answerFailure(s.log, w, r, err)
}

func answerFailure(log *slog.Logger, w http.ResponseWriter, r *http.Request, err error) {
	e := asError(err)
	status := e.Code.Status()
	if status == http.StatusInternalServerError {
		log.Error("a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	writeJSON(w, status, e)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(complete(value)) // a client that is gone needs no answer
}

func noSuchPath(path string) error {
	return session.NewError(session.CodeNoRoute, fmt.Sprintf("There is nothing at %s.", path), "GET "+
		route.OpenAPI.Target()+" lists what there is.")
}

func wrongMethod(method, allowed string) error {
	return session.NewError(session.CodeWrongMethod, fmt.Sprintf("%s is not possible here.", method), "Possible: "+
		allowed+".")
}

// wrongField is what is wrong with a field of a request.
func wrongField(name, message, hint string) session.FieldError {
	return session.FieldError{Field: name, Kind: session.KindInvalid, Message: message, Hint: hint}
}

func badQuery(name, message, hint string) error {
	return session.Refused(session.CodeRequestInvalid, wrongField(name, message, hint))
}

// onlyGet reports whether a request is a GET, and answers others.
func (s *Server) onlyGet(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet {
		return true
	}
	w.Header().Set("Allow", http.MethodGet)
	s.fail(w, r, wrongMethod(r.Method, http.MethodGet))
	return false
}
