package session

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Serving is how the server of an inference session is started, reached and judged. It is one revision of a service.
type Serving struct {
	Service  string `json:"service,omitempty"`  // its name; the agent sets it and Revision
	Revision int    `json:"revision,omitempty"` // of the service, from 1
	// program and arguments, started without a shell; empty: what the image starts by itself. See [GPUMemoryShare]
	Command  []string      `json:"command,omitempty"`
	PreStart []StartAction `json:"preStart,omitempty"` // done before it starts, in this order; if one fails, so does it
	Port     int           `json:"port"`               // on which the server listens
	Models   []string      `json:"models,omitempty"`   // under which clients ask for it; empty: that of the service
	Health   Health        `json:"health,omitzero"`
}

// Health is how a server is asked whether it answers. Zero fields have the defaults of [Health.WithDefaults].
type Health struct {
	Path               string   `json:"path,omitempty"`               // asked with GET
	Interval           Duration `json:"interval,omitempty"`           // between two questions to a healthy server
	MaxRetries         int      `json:"maxRetries,omitempty"`         // failures in a row after which it is out of use
	MaxWaitTime        Duration `json:"maxWaitTime,omitempty"`        // for one answer
	ExpectedStatusCode int      `json:"expectedStatusCode,omitempty"` // HTTP status of a healthy server
	InitialDelay       Duration `json:"initialDelay,omitempty"`       // from its start to its first healthy answer
}

// WithDefaults fills in zero fields as Backend.AI's model-definition.yaml does.
func (h Health) WithDefaults() Health {
	if h.Path == "" {
		h.Path = "/health"
	}
	for _, field := range []struct {
		value *Duration
		zero  time.Duration
	}{{&h.Interval, 10 * time.Second}, {&h.MaxWaitTime, 15 * time.Second}, {&h.InitialDelay, time.Minute}} {
		if *field.value == 0 {
			*field.value = Duration(field.zero)
		}
	}
	if h.MaxRetries == 0 {
		h.MaxRetries = 10
	}
	if h.ExpectedStatusCode == 0 {
		h.ExpectedStatusCode = 200
	}
	return h
}

// Patience is how long checks may fail until a replica is out of use, and again until it is replaced.
func (h Health) Patience() time.Duration {
	h = h.WithDefaults()
	return time.Duration(h.MaxRetries) * time.Duration(h.Interval)
}

// Bounds of a [Serving].
const (
	MaxArguments = 1000
	MaxModels    = 32
	maxModelName = 256
	maxHealth    = 1000
)

// validateServing checks the part of an inference session that others lack, and that it has nothing that would end or
// change a server under its clients.
func (s Spec) validateServing(f *findings) {
	if s.Type != Inference {
		f.refuse(s.Serving != nil, "serving", KindConflict, "Only an inference session serves a model.",
			"Choose the type inference, or leave it out.")
		return
	}
	const hint = "Leave it empty, or choose the type interactive."
	f.refuse(s.Cluster > 1, "cluster", KindConflict, "An inference session has one kernel.", hint)
	f.refuse(s.Admin, "admin", KindConflict, "An inference session has no administrator.", hint)
	f.refuse(s.CommitOnEnd > 0, "commitOnEnd", KindConflict, "No image is made of an inference session.", hint)
	if s.Serving == nil {
		f.add("serving", KindRequired, "An inference session needs a server.", "Say on which port it listens.")
		return
	}
	s.Serving.validate(f)
	s.Serving.validateStart(f, s)
}

func (s Serving) validate(f *findings) {
	f.refuse(s.Port < MinPort || s.Port > MaxPort || ReservedPort(s.Port), "serving.port", KindRange,
		fmt.Sprintf("A server cannot listen on port %d.", s.Port),
		fmt.Sprintf("Choose one from %d to %d, without %d to %d.", MinPort, MaxPort, firstOwnPort, lastOwnPort))
	size := 0
	for _, argument := range s.Command {
		size += len(argument) + 1
	}
	f.refuse(len(s.Command) > MaxArguments || size > maxText, "serving.command", KindInvalid,
		"The server's command is too long.", "Put it in a script in a mounted folder.")
	f.refuse(len(s.Command) > 0 && s.Command[0] == "" || strings.ContainsRune(strings.Join(s.Command, ""), 0),
		"serving.command", KindInvalid, "The server's command has no program, or contains a NUL character.",
		"Write the program and its arguments.")
	f.refuse(len(s.Models) > MaxModels, "serving.models", KindTooMany,
		fmt.Sprintf("A server has at most %d names of models.", MaxModels), "Remove some of them.")
	for i, model := range s.Models {
		f.refuse(!validModel(model) || slices.Contains(s.Models[:i], model), fmt.Sprintf("serving.models[%d]", i),
			KindInvalid, fmt.Sprintf("%q is not the name of a model, or is there twice.", Clip(model)),
			"Write it as clients do, for example meta-llama/Llama-3.1-8B.")
	}
	s.Health.validate(f)
}

// validModel reports whether a text can be the name of a model: printable, without spaces.
func validModel(name string) bool {
	return name != "" && len(name) <= maxModelName && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '"' || r == '\\'
	})
}

func (h Health) validate(f *findings) {
	f.refuse(h.Path != "" && (!strings.HasPrefix(h.Path, "/") || len(h.Path) > maxModelName ||
		strings.ContainsFunc(h.Path, func(r rune) bool { return r <= ' ' || r > '~' })), "serving.health.path",
		KindInvalid, fmt.Sprintf("%q is not the path of a health check.", Clip(h.Path)), "Write for example /health.")
	const second = Duration(time.Second) // the shortest that is written
	for _, time := range []struct {
		field string
		value Duration
	}{{"interval", h.Interval}, {"maxWaitTime", h.MaxWaitTime}, {"initialDelay", h.InitialDelay}} {
		f.refuse(time.value != 0 && !plausible(time.value, second), "serving.health."+time.field, KindRange,
			"A time of the health check is not between 1 s and 520 w.", "Write for example 10s, or leave it empty.")
	}
	f.refuse(h.MaxRetries < 0 || h.MaxRetries > maxHealth, "serving.health.maxRetries", KindRange,
		fmt.Sprintf("%d is not a number of health checks.", h.MaxRetries), "Leave it empty for 10.")
	status := h.ExpectedStatusCode
	f.refuse(status != 0 && (status < 100 || status > 599), "serving.health.expectedStatusCode", KindRange,
		fmt.Sprintf("%d is not an HTTP status.", status), "Leave it empty for 200.")
}
