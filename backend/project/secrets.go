package project

import (
	"path"
	"slices"
	"strings"

	"slipway/backend/session"
)

// readSecrets finds the secrets that the Dockerfile mounts. Slipway has none with a name that no variable can have.
func (p *Plan) readSecrets() {
	for _, id := range mounted(p.Dockerfile) {
		switch {
		case session.CheckVariable("secrets", id) != nil:
			p.leave(id, "projectSecretName")
		case len(p.Secrets) < session.MaxEnv:
			p.Secrets = append(p.Secrets, id)
		}
	}
}

// DeclaresProxy reports whether the Dockerfile has an ARG for a proxy, whose address is then written into the image.
func (p *Plan) DeclaresProxy() bool {
	return slices.ContainsFunc(instructions(p.Dockerfile), func(words []string) bool {
		if len(words) == 0 || !strings.EqualFold(words[0], "ARG") {
			return false
		}
		return slices.ContainsFunc(words[1:], func(word string) bool {
			name, _, _ := strings.Cut(strings.ToUpper(word), "=")
			return name == "HTTP_PROXY" || name == "HTTPS_PROXY"
		})
	})
}

// mounted returns the ids of RUN --mount=type=secret in a Dockerfile.
func mounted(text string) (ids []string) {
	for _, words := range instructions(text) {
		if len(words) == 0 || !strings.EqualFold(words[0], "RUN") {
			continue
		}
		for _, word := range words[1:] {
			if !strings.HasPrefix(word, "--") {
				break
			}
			mount, found := strings.CutPrefix(word, "--mount=")
			if id := secretOf(mount); found && id != "" && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// secretOf returns the id of a mount; empty if it is not of a secret.
func secretOf(mount string) (id string) {
	secret, target := false, ""
	for field := range strings.SplitSeq(mount, ",") {
		key, value, _ := strings.Cut(strings.Trim(field, `"'`), "=")
		switch value = strings.Trim(value, `"'`); strings.ToLower(key) {
		case "type":
			secret = value == "secret"
		case "id":
			id = value
		case "target", "dst", "destination":
			target = value
		}
	}
	switch {
	case !secret:
		return ""
	case id == "" && target != "":
		return path.Base(target)
	}
	return id
}

// instructions returns the words of each instruction of a Dockerfile, which a backslash continues in the next line.
func instructions(text string) (all [][]string) {
	continued := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") || continued && line == "" {
			continue
		}
		rest, more := strings.CutSuffix(line, `\`)
		if words := strings.Fields(rest); continued {
			all[len(all)-1] = append(all[len(all)-1], words...)
		} else {
			all = append(all, words)
		}
		continued = more
	}
	return all
}
