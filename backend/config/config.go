// Package config reads from the settings of a machine how its agent works.
package config

import (
	"errors"
	"fmt"
	"slices"

	"slipway/backend/layers"
	"slipway/backend/session"
	"slipway/gpu"
)

// Agent is how the agent of a machine works.
type Agent struct {
	Shares gpu.Config // how shares of devices are allocated
	Idle   session.IdlePolicy
	Guard  gpu.Policy // what happens to a session that exceeds its share of a device's memory
	// Processes is the most processes and threads in a container; 0: no limit.
	Processes   int
	MPSForUsers bool         // people who are no admins may use MPS
	Images      layers.Quota // of images that people send
	Library     string       // path of NVIDIA's library; empty: a usual one
}

// ReadAgent reads the settings from the environment. It fails rather than return anything else than was meant.
func ReadAgent(env func(string) string) (Agent, error) {
	r := reader{env: env}
	agent := Agent{Shares: r.shares(), Idle: r.idle(), Guard: r.guard(), Processes: r.processes(), Images: r.images(),
		MPSForUsers: env("SLIPWAY_GPU_MPS") == "1", Library: env("SLIPWAY_NVML_LIBRARY")}
	return agent, errors.Join(r.errs...)
}

// reader reads variables and gathers what is wrong with them.
type reader struct {
	env  func(string) string
	errs []error
}

func (r *reader) wrong(name, hint string) {
	r.errs = append(r.errs, &session.Error{Code: session.CodeServerInvalid,
		Message: fmt.Sprintf("%s=%s is not valid.", name, r.env(name)), Hint: hint})
}

// set reads a variable by parse, unless it is not set; parse returns false for a value that is not valid.
func set[T any](r *reader, name, hint string, into *T, parse func(text string) (T, bool)) {
	text := r.env(name)
	if text == "" {
		return
	}
	value, ok := parse(text)
	if !ok {
		r.wrong(name, hint)
		return
	}
	*into = value
}

// word reads a variable that is one of some words.
func word[T ~string](r *reader, name, hint string, words ...T) T {
	value := T(r.env(name))
	if value != "" && !slices.Contains(words, value) {
		r.wrong(name, hint)
	}
	return value
}

func parseBytes(text string) (gpu.Bytes, bool) {
	amount, err := gpu.ParseBytes(text)
	return amount, err == nil
}

func (r *reader) length(name, example string, into *session.Duration) {
	if err := into.UnmarshalText([]byte(r.env(name))); err != nil {
		r.wrong(name, "Write a whole number with s, m, h, d or w, for example "+example+".")
	}
}
