// Package config reads from the settings of a machine how its agent works.
package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/backend/layers"
	"slipway/backend/session"
	"slipway/gpu"
)

// Agent is how the agent of a machine works.
type Agent struct {
	Shares      gpu.Config // how shares of devices are allocated
	Idle        session.IdlePolicy
	Guard       gpu.Policy // what happens to a session that exceeds its share of device memory
	Processes   int        // maximum number of processes and threads in a container; 0: no limit
	Warm        int        // containers that wait for launches at most
	MPSForUsers bool       // users who are not admins may use MPS
	Admins      session.AdminSessions
	Images      layers.Quota // of image uploads
	Library     string       // path of NVIDIA's library; empty: a standard location
	Services    session.NetworkListener
}

// ReadAgent reads the variables that package settings describes. It fails if any of them is invalid.
func ReadAgent(env func(string) string) (Agent, error) {
	r := reader{env: env}
	agent := Agent{Shares: r.shares(), Idle: r.idle(), Guard: word(&r, "SLIPWAY_GPU_GUARD",
		"Write warn, end-process or end-session.", gpu.PolicyWarn, gpu.PolicyEndProcess, gpu.PolicyEndSession),
		Processes: session.DefaultProcesses, Warm: session.DefaultWarm, MPSForUsers: env("SLIPWAY_GPU_MPS") == "1",
		Admins: word(&r, "SLIPWAY_SESSION_ADMIN", "Write admins, everyone or none.", session.AdminsOnly,
			session.AdminsAll, session.AdminsNone),
		Library: env("SLIPWAY_NVML_LIBRARY"),
		Services: session.NetworkListener{Certificate: env("SLIPWAY_SERVICES_CERTIFICATE"),
			Key: env("SLIPWAY_SERVICES_KEY")}}
	set(&r, "SLIPWAY_SERVICES_LISTEN", "Write host:port, for example 0.0.0.0:8443.", &agent.Services.Address,
		func(text string) (string, bool) {
			_, port, err := net.SplitHostPort(text)
			number, bad := strconv.ParseUint(port, 10, 16)
			return text, err == nil && bad == nil && number > 0
		})
	set(&r, "SLIPWAY_SESSION_PROCESSES", fmt.Sprintf("Write a number from %d to %d, or 0 for no limit.",
		session.MinProcesses, session.MaxProcesses), &agent.Processes, func(text string) (int, bool) {
		n, err := strconv.Atoi(text)
		return n, err == nil && (n == 0 || n >= session.MinProcesses && n <= session.MaxProcesses)
	})
	set(&r, "SLIPWAY_SESSION_WARM", fmt.Sprintf("Write a number from 0 to %d.", session.MaxWarm), &agent.Warm,
		func(text string) (int, bool) {
			n, err := strconv.Atoi(text)
			return n, err == nil && n >= 0 && n <= session.MaxWarm
		})
	agent.Images = r.images()
	return agent, errors.Join(r.errs...)
}

// reader reads variables and collects errors.
type reader struct {
	env  func(string) string
	errs []error
}

func (r *reader) wrong(name, hint string) {
	r.errs = append(r.errs, &session.Error{Code: session.CodeServerInvalid,
		Message: fmt.Sprintf("%s=%s is not valid.", name, r.env(name)), Hint: hint})
}

// set parses a variable if it is set; parse returns false for an invalid value.
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

// word reads a variable that is one of some words, or not set.
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

// shares reads how shares of devices are allocated. Unlike in Backend.AI, fragments are off by default: work on several
// devices waits for the smallest of its parts, so equal parts are better than parts of 1, 0.3 and 0.2.
func (r *reader) shares() (config gpu.Config) {
	set(r, "SLIPWAY_GPU_QUANTUM", "Write a share of one device, for example 0.1.", &config.Quantum,
		func(text string) (gpu.Share, bool) {
			share, err := gpu.ParseShare(text)
			return share, err == nil && share >= 1 && share <= gpu.WholeDevice
		})
	config.Strategy = word(r, "SLIPWAY_GPU_STRATEGY", "Write fill or evenly.", gpu.Fill, gpu.Evenly)
	config.AllowFragmentation = word(r, "SLIPWAY_GPU_FRAGMENTS", "Write 1 to allow them, or 0.", "0", "1") == "1"
	set(r, "SLIPWAY_GPU_RESERVE", "Write an amount of memory, for example 1g.", &config.Floor, parseBytes)
	for uuid := range strings.FieldsFuncSeq(r.env("SLIPWAY_GPU_EXCLUDE"),
		func(r rune) bool { return r == ',' || r == ' ' }) {
		config.Exclude = append(config.Exclude, gpu.UUID(uuid))
	}
	return config
}

// idle reads when idle sessions end. If none of its variables is set, none does.
func (r *reader) idle() (policy session.IdlePolicy) {
	before := len(r.errs)
	r.length("SLIPWAY_IDLE_LIFETIME", "4h", &policy.Lifetime)
	r.length("SLIPWAY_IDLE_NETWORK", "4h", &policy.Network)
	r.length("SLIPWAY_IDLE_WINDOW", "4h", &policy.Use.Window)
	r.length("SLIPWAY_IDLE_GRACE", "4h", &policy.Use.Grace)
	percent := func(name string, into **float64) {
		set(r, name, "Write a percentage, for example 5.", into, func(text string) (*float64, bool) {
			value, err := strconv.ParseFloat(text, 64)
			return &value, err == nil
		})
	}
	percent("SLIPWAY_IDLE_CPU", &policy.Use.CPU)
	percent("SLIPWAY_IDLE_MEMORY", &policy.Use.Memory)
	percent("SLIPWAY_IDLE_GPU", &policy.Use.GPU)
	percent("SLIPWAY_IDLE_VRAM", &policy.Use.VRAM)
	policy.Use.Any = r.env("SLIPWAY_IDLE_ANY") == "1"
	policy.Park = r.env("SLIPWAY_IDLE_PARK") == "1"
	if faults := policy.Validate(""); len(r.errs) == before && len(faults) > 0 {
		r.errs = append(r.errs, &session.Error{Code: session.CodeServerInvalid, Hint: faults[0].Hint,
			Message: "The policy of SLIPWAY_IDLE variables cannot be used: " + faults[0].Message})
	}
	return policy
}

// images reads the limits of one person's unfinished image uploads; zero fields have the defaults of package layers.
func (r *reader) images() (quota layers.Quota) {
	set(r, "SLIPWAY_IMAGES_RECEIVE_MOST", "Write a number of images, for example 4.", &quota.Images,
		func(text string) (int, bool) {
			most, err := strconv.Atoi(text)
			return most, err == nil && most >= 1
		})
	set(r, "SLIPWAY_IMAGES_RECEIVE_SIZE", "Write an amount, for example 100g.", &quota.Size,
		func(text string) (gpu.Bytes, bool) {
			size, ok := parseBytes(text)
			return size, ok && size > 0
		})
	var keep session.Duration
	r.length("SLIPWAY_IMAGES_RECEIVE_KEEP", "7d", &keep)
	quota.Keep = time.Duration(keep)
	return quota
}
