package session

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"slipway/gpu"
)

// Confidential is what a launch needs and what is neither stored with the session nor shown: an agent keeps it in a
// file that only its person can read, until the session has ended.
type Confidential struct {
	Secrets []EnvVar       `json:"secrets,omitempty"` // a value for each of [Spec].Secrets
	Login   *RegistryLogin `json:"login,omitempty"`   // for the registry of the image; nil: none
	Author  GitAuthor      `json:"author,omitzero"`   // of commits in the session; zero: unknown
}

// IsZero reports whether there is nothing to keep.
func (c Confidential) IsZero() bool {
	return len(c.Secrets) == 0 && c.Login == nil && c.Author == GitAuthor{}
}

// GitAuthor is the name and the address that a person's commits have. Either may be empty.
type GitAuthor struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email,omitempty"`
}

// RegistryLogin is a person's login to a registry.
type RegistryLogin struct {
	Server   string `json:"server"` // as [RegistryOf] returns it
	User     string `json:"user"`
	Password string `json:"password"`
}

// ProxyToken is the password of the proxy of one build: 26 to 64 letters and digits, random.
type ProxyToken string

// String hides the token from logs and texts.
func (ProxyToken) String() string { return Hidden }

// UnmarshalText implements [encoding.TextUnmarshaler]. It accepts only what can be a token.
func (t *ProxyToken) UnmarshalText(text []byte) error {
	if len(text) < 26 || len(text) > 64 || strings.Trim(string(text), "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return NewError(CodeAgentInvalid, "The token of a proxy is invalid.", "Start the build again.")
	}
	*t = ProxyToken(text)
	return nil
}

// DockerHub is the registry of images whose names have none.
const DockerHub = "docker.io"

// RegistryOf returns the host of the registry that an image is pulled from.
func RegistryOf(ref string) string {
	host, _, found := strings.Cut(ref, "/")
	if !found || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return DockerHub
	}
	return hubOr(host)
}

// LoginFor returns the login for the registry of an image, nil if there is none.
func LoginFor(ref string, logins []RegistryLogin) *RegistryLogin {
	i := slices.IndexFunc(logins, func(l RegistryLogin) bool { return l.Server == RegistryOf(ref) })
	if i < 0 {
		return nil
	}
	return &logins[i]
}

// hubOr replaces the other names of Docker Hub.
func hubOr(host string) string {
	if host == "index.docker.io" || host == "registry-1.docker.io" || host == "hub.docker.com" {
		return DockerHub
	}
	return host
}

var registryRule = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`)
})

// CleanRegistry returns the host of a registry that a person names, also by an address; empty if it is none.
func CleanRegistry(text string) string {
	host := strings.ToLower(strings.TrimSpace(text))
	host = strings.TrimPrefix(strings.TrimPrefix(host, "https://"), "http://")
	host, _, _ = strings.Cut(host, "/")
	if len(host) > 255 || !registryRule().MatchString(host) || RegistryOf(host+"/image") != hubOr(host) {
		return ""
	}
	return hubOr(host)
}

// CheckVariable returns what is wrong with the name of a variable; nil if nothing is.
func CheckVariable(field, name string) *FieldError {
	switch {
	case !envRule.MatchString(name) || len(name) > maxVariable:
		return new(Fault(field, KindInvalid, Say("envName")))
	case strings.HasPrefix(strings.ToUpper(name), "SLIPWAY_"):
		return new(Fault(field, KindReserved, Say("envReserved")))
	}
	return nil
}

// CheckValue returns what is wrong with the value of a variable; nil if nothing is.
func CheckValue(field, name, value string) *FieldError {
	switch {
	case len(value) > maxValue:
		return &FieldError{Field: field, Kind: KindInvalid, Message: fmt.Sprintf(
			"The value of %s is %s long; the maximum is 100 KiB.", Clip(name), gpu.Bytes(len(value))),
			Hint: "Put it in a file in a mounted folder."}
	case strings.ContainsRune(value, 0):
		return &FieldError{Field: field, Kind: KindInvalid,
			Message: fmt.Sprintf("The value of %s contains a NUL character.", Clip(name)), Hint: "Remove it."}
	}
	return nil
}

// MissingSecrets returns the secrets of a spec for which has reports no value.
func (s Spec) MissingSecrets(has func(name string) bool) []FieldError {
	var wrong []FieldError
	for i, name := range s.Secrets {
		if !has(name) {
			wrong = append(wrong, Fault(fmt.Sprintf("secrets[%d]", i), KindNotFound,
				Say("secretMissing", Fill("name", Clip(name)))))
		}
	}
	return wrong
}

// Check returns what is wrong with c beside a spec: it must have the values of the spec's secrets, and no others.
func (c Confidential) Check(spec Spec) []FieldError {
	wrong := spec.MissingSecrets(func(name string) bool {
		return slices.ContainsFunc(c.Secrets, func(v EnvVar) bool { return v.Name == name })
	})
	for _, v := range c.Secrets {
		i := slices.Index(spec.Secrets, v.Name)
		field := fmt.Sprintf("secrets[%d]", max(i, 0))
		if i < 0 {
			wrong = append(wrong, FieldError{Field: field, Kind: KindInvalid,
				Message: "A value came for " + Clip(v.Name) + ", which the session does not ask for.",
				Hint:    "Name it among the secrets of the session."})
		} else if e := CheckValue(field, v.Name, v.Value); e != nil {
			wrong = append(wrong, *e)
		}
	}
	if l := c.Login; l != nil && (CleanRegistry(l.Server) != l.Server || cmp.Or(l.User, l.Password) == "") {
		wrong = append(wrong, FieldError{Field: "image", Kind: KindInvalid,
			Message: "The registry login of the launch is incomplete.", Hint: "Log in to the registry again."})
	}
	return wrong
}
