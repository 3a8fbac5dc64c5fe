package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"slipway/backend/api/route"
	"slipway/backend/session"
)

// Codes of failures that the server itself finds.
const (
	codeUnknownField session.Code = "request_decode_unknown-field"
	codeWrongType    session.Code = "request_decode_wrong-type"
	codeMalformed    session.Code = "request_decode_malformed"
	codeTooLarge     session.Code = "request_decode_too-large"
	codeBadQuery     session.Code = "request_query_invalid-parameter"
	codeNoPath       session.Code = "request_route_not-found"
	codeNoMethod     session.Code = "request_route_wrong-method"
	codeNoUpgrade    session.Code = "request_route_upgrade-required"
	codeLogin        session.Code = "request_login_required"
	codeStranger     session.Code = "request_user_forbidden"
	codeBadHost      session.Code = "request_host_forbidden"
	codeBadOrigin    session.Code = "request_origin_forbidden"
	codeGone         session.Code = "request_wait_cancelled"
	codeTimeout      session.Code = "request_wait_timeout"
	codeInternal     session.Code = "server_request_internal-error"
)

// ownStatus is the status of the codes that say more than their detail does.
var ownStatus = map[session.Code]int{
	codeUnknownField: http.StatusBadRequest,
	codeWrongType:    http.StatusBadRequest,
	codeMalformed:    http.StatusBadRequest,
	codeTooLarge:     http.StatusRequestEntityTooLarge,
	codeBadQuery:     http.StatusBadRequest,
	codeNoMethod:     http.StatusMethodNotAllowed,
	codeNoUpgrade:    http.StatusUpgradeRequired,
	codeLogin:        http.StatusUnauthorized,
	codeGone:         http.StatusServiceUnavailable,
}

var detailStatus = map[string]int{
	session.DetailInvalid:     http.StatusUnprocessableEntity,
	session.DetailNotFound:    http.StatusNotFound,
	session.DetailExists:      http.StatusConflict,
	session.DetailForbidden:   http.StatusForbidden,
	session.DetailConflict:    http.StatusConflict,
	session.DetailUnavailable: http.StatusServiceUnavailable,
	session.DetailTimeout:     http.StatusGatewayTimeout,
	session.DetailInternal:    http.StatusInternalServerError,
	"no-space":                http.StatusInsufficientStorage,
	"exited":                  http.StatusBadGateway,
}

// statusOf is the HTTP status of a failure: what is wrong with a field is 422,
// else the detail of the code decides, and a code that is none of these says
// that the state of things forbids it, 409.
func statusOf(e *session.Error) int {
	if status, ok := ownStatus[e.Code]; ok {
		return status
	}
	detail := e.Code.Detail()
	if status, ok := detailStatus[detail]; ok {
		return status
	}
	if len(e.Fields) > 0 || strings.HasPrefix(detail, "invalid-") || strings.HasPrefix(detail, "missing-") {
		return http.StatusUnprocessableEntity
	}
	return http.StatusConflict
}

// asError turns any failure into one that a person can read. What is none of
// ours is told as an internal error, without its text.
func asError(err error) *session.Error {
	var e *session.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.Canceled):
		return &session.Error{Code: codeGone, Message: "The request was given up.", Hint: "Try again.", Err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &session.Error{Code: codeTimeout, Message: "It took too long.", Hint: "Try again.", Err: err}
	}
	return &session.Error{Code: codeInternal, Message: "Something went wrong inside Slipway.",
		Hint: "The log file says more: slipway doctor names it.", Err: err}
}

// fail writes err as a Problem. Only what is our own fault is logged.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	answerFailure(s.log, w, r, err)
}

func answerFailure(log *slog.Logger, w http.ResponseWriter, r *http.Request, err error) {
	e := asError(err)
	status := statusOf(e)
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
	return &session.Error{Code: codeNoPath, Message: fmt.Sprintf("There is nothing at %s.", path),
		Hint: "GET " + route.OpenAPI.Target() + " lists what there is."}
}

func wrongMethod(method, allowed string) error {
	return &session.Error{Code: codeNoMethod, Message: fmt.Sprintf("%s is not possible here.", method),
		Hint: "Possible: " + allowed + "."}
}

func badQuery(name, message, hint string) error {
	return &session.Error{Code: codeBadQuery, Message: message, Hint: hint,
		Fields: []session.FieldError{{Field: name, Code: codeBadQuery, Message: message, Hint: hint}}}
}
