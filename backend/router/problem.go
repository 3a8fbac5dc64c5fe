package router

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// problem is why the router answers a request itself. Message is one sentence.
type problem struct {
	status  int
	outcome Outcome
	kind    string // type in OpenAI's form
	code    string
	param   string
	message string
	retry   time.Duration // 0: no Retry-After
}

// write answers with the problem.
func (p *problem) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if p.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retry.Seconds()))))
	}
	if p.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(p.status)
	_, _ = w.Write(append(p.json(), '\n')) // a client that left is noticed by its context
}

// json is the problem in OpenAI's form.
func (p *problem) json() []byte {
	type body struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	one := body{Message: p.message, Type: p.kind}
	if p.param != "" {
		one.Param = &p.param
	}
	if p.code != "" {
		one.Code = &p.code
	}
	out, _ := json.Marshal(map[string]body{"error": one}) // strings always have JSON
	return out
}

func refused(status int, code, message string) *problem {
	return &problem{status: status, outcome: OutcomeRefused, kind: "invalid_request_error", code: code,
		message: message}
}

func limited(message string, retry time.Duration) *problem {
	return &problem{status: http.StatusTooManyRequests, outcome: OutcomeLimited, kind: "requests",
		code: "rate_limit_exceeded", message: message, retry: retry}
}

func failed(status int, code, message string) *problem {
	return &problem{status: status, outcome: OutcomeFailed, kind: "server_error", code: code, message: message}
}

// again is the Retry-After of a request that found no ready replica.
const again = 5 * time.Second

func unavailable(outcome Outcome, message string) *problem {
	p := failed(http.StatusServiceUnavailable, "unavailable", message)
	p.outcome, p.retry = outcome, again
	return p
}

func needsToken() *problem {
	return refused(http.StatusUnauthorized, "invalid_api_key",
		"This request needs a token of the service in its Authorization header.")
}

func wrongToken() *problem {
	return refused(http.StatusUnauthorized, "invalid_api_key", "The token is not valid for this service.")
}

func lateToken() *problem {
	return refused(http.StatusUnauthorized, "invalid_api_key", "The token has expired.")
}

func noService(name string) *problem {
	return refused(http.StatusNotFound, "not_found", fmt.Sprintf("No service is named %q.", clip(name)))
}

func noModel(name string) *problem {
	p := refused(http.StatusNotFound, "model_not_found", fmt.Sprintf("No model is named %q.", clip(name)))
	p.param = "model"
	return p
}

func tooLarge(limit int64) *problem {
	return refused(http.StatusRequestEntityTooLarge, "too_large",
		fmt.Sprintf("The body of a request may have at most %d bytes.", limit))
}

// clip shortens what a client named.
func clip(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
