package recipe

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"

	"slipway/backend/session"
)

// maxLink is the longest link, in bytes.
const maxLink = 32 << 10

// Link is the content of a slipway:// link. It has no effect until the user confirms it.
type Link struct {
	Kind    string        `json:"kind"`              // run or open
	Spec    *session.Spec `json:"spec,omitempty"`    // of run
	Session string        `json:"session,omitempty"` // of open: an id or the name of a live one
}

// ParseLink parses slipway://run?image=… with the fields of a recipe, or a whole one as recipe=BASE64URL, or
// slipway://open/SESSION. It refuses a link with the value of a secret-looking variable, because links are kept in
// histories. It fails with a *Fault.
func ParseLink(text string) (Link, error) {
	if len(text) > maxLink {
		return Link{}, &Fault{Message: "the link is longer than 32 KiB.", Hint: "Send the recipe as a file."}
	}
	address, err := url.Parse(text)
	const hint = "They begin with slipway://run? or slipway://open/."
	if err != nil || address.Scheme != "slipway" {
		return Link{}, &Fault{Message: "this is no link of Slipway.", Hint: hint}
	}
	switch address.Host {
	case "open":
		ref := strings.Trim(address.Path, "/")
		if !session.ValidID(ref) && session.SessionNames.Check(ref) != nil {
			return Link{}, &Fault{Message: fmt.Sprintf("the link names no session: %q.", ref),
				Hint: "Write slipway://open/ and the id or name of a session."}
		}
		return Link{Kind: "open", Session: ref}, nil
	case "run":
		spec, err := linkSpec(address.RawQuery)
		return Link{Kind: "run", Spec: &spec}, err
	}
	return Link{}, &Fault{Message: fmt.Sprintf("Slipway has no links to %q.", address.Host), Hint: hint}
}

func linkSpec(query string) (session.Spec, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return session.Spec{}, &Fault{Message: "the link is not written as addresses are.",
			Hint: "Encode signs such as & and % in its values."}
	}
	var spec session.Spec
	if whole := values.Get("recipe"); whole != "" {
		data, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(whole, "="))
		if err != nil {
			return spec, &Fault{Message: "the recipe in the link is no base64url.", Hint: "Copy the whole link."}
		}
		if spec, err = Parse(data); err != nil {
			return spec, err
		}
		delete(values, "recipe")
	}
	for name, all := range values {
		for _, value := range all {
			if err := setField(&spec, name, value); err != nil {
				return spec, err
			}
		}
	}
	if spec.Image == "" {
		return spec, &Fault{Message: "the link names no image.", Hint: "Add image=NAME to it."}
	}
	for _, v := range spec.Env {
		if v.Value != "" && session.SecretName(v.Name) {
			return spec, &Fault{Message: fmt.Sprintf("the link holds a value of %s, which looks secret.", v.Name),
				Hint: "Addresses are kept in histories: take the value out, and change it where it is used."}
		}
	}
	return spec, nil
}

// setField sets one parameter of a link.
func setField(spec *session.Spec, name, value string) error {
	switch name {
	case "name", "type", "image", "command", "agent", "group", "label", "timeout", "accelerator", "threads", "cluster":
		return Set(spec, name, value)
	case "memory", "shm", "cpu":
		return Set(spec, "resources."+name, value)
	case "env":
		variable, content, _ := strings.Cut(value, "=")
		spec.Env = append(spec.Env, session.EnvVar{Name: variable, Value: content})
	case "port":
		ports, err := ParsePorts(value)
		if err != nil {
			return &Fault{Message: fmt.Sprintf("port is %q, which is no port.", value), Hint: portHint}
		}
		spec.Ports = append(spec.Ports, ports...)
	case "folder":
		folder, target, _ := strings.Cut(value, ":")
		spec.Mounts = append(spec.Mounts, session.Mount{Folder: folder, Target: target})
	default:
		return &Fault{Message: fmt.Sprintf("%q is nothing that a link may say.", name),
			Hint: "Put the whole recipe into the link as recipe=, or send it as a file."}
	}
	return nil
}
