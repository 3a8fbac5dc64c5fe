// Package diagnose removes secrets, and the path of the user's home directory, from Slipway's logs and reports, so that
// they can be shared.
package diagnose

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"slipway/backend/session"
)

// Redactor removes secrets from texts. The zero value finds them only by their form.
type Redactor struct {
	secrets []string
	home    string
}

// NewRedactor returns a redactor that also removes these secrets and replaces home, unless that is empty, by ~.
func NewRedactor(home string, secrets ...string) Redactor {
	secrets = slices.DeleteFunc(slices.Clone(secrets), func(secret string) bool { return secret == "" })
	return Redactor{home: strings.TrimRight(home, "/"), secrets: secrets}
}

const mask = "•••"

var (
	// assigned is a name with a value: in a log, an address, JSON, a shell or YAML.
	assigned = regexp.MustCompile(
		`([A-Za-z_][A-Za-z0-9_.-]*)(["']?[ \t]*[:=][ \t]*)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s&,;"'}]+)`)
	// quoted is a name and its value between the same quotes.
	quoted = regexp.MustCompile(`(["'])([A-Za-z_][A-Za-z0-9_]*)=([^"'\n]*)(["'])`)
	// bearer is the value of an Authorization header.
	bearer = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]+`)
	// login is the user and password in an address.
	login = regexp.MustCompile(`(://[^\s/:@]+):[^\s/@]+@`)
	// keyBlock is a private key in a file, complete or cut off.
	keyBlock = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\z)`)
	// random is a text that looks random, as tokens do.
	random = regexp.MustCompile(`\b(?:[a-z2-7]{40,}|[A-Za-z0-9_-]*(?:ghp_|hf_|sk-|xox[bp]-|AKIA)[A-Za-z0-9_-]{12,})`)
)

// codeNames are names of secrets that [session.SecretName] does not have, because variables of sessions may have these
// names.
var codeNames = map[string]bool{"code": true, "pin": true, "cookie": true, "authorization": true}

// Text returns text without secrets.
func (r Redactor) Text(text string) string {
	for _, secret := range r.secrets {
		text = strings.ReplaceAll(text, secret, mask)
	}
	text = keyBlock.ReplaceAllString(text, mask)
	text = bearer.ReplaceAllString(text, "$1 "+mask)
	text = login.ReplaceAllString(text, "$1:"+mask+"@")
	text = quoted.ReplaceAllStringFunc(text, func(found string) string {
		parts := quoted.FindStringSubmatch(found)
		if isSecret(parts[2], parts[3]) {
			return parts[1] + parts[2] + "=" + mask + parts[4]
		}
		return found
	})
	text = random.ReplaceAllStringFunc(maskAssigned(text), func(found string) string {
		if strings.ContainsAny(found, "0123456789-_") {
			return mask
		}
		return found // a long word
	})
	if r.home != "" && r.home != "/" {
		text = strings.ReplaceAll(text, r.home, "~")
	}
	return text
}

// maskAssigned masks the values of secret names, also within other values.
func maskAssigned(text string) string {
	var out strings.Builder
	for {
		at := assigned.FindStringSubmatchIndex(text)
		if at == nil {
			out.WriteString(text)
			return out.String()
		}
		name, value := text[at[2]:at[3]], text[at[6]:at[7]]
		out.WriteString(text[:at[6]])
		text = text[at[6]:]
		if isSecret(name, value) {
			out.WriteString(mask)
			text = text[len(value):]
		}
	}
}

// isSecret reports whether a value is secret by its name. Codes of errors are not: reports need them.
func isSecret(name, value string) bool {
	if strings.EqualFold(name, "code") && strings.Count(value, "_") >= 2 {
		return false
	}
	return session.SecretName(name) || codeNames[strings.ToLower(name)]
}

// tailMost is how much of the end of a file is read, in bytes.
const tailMost = 1 << 20

// Tail returns the newest lines of a log, oldest first, without secrets, or none if there is no log.
func (r Redactor) Tail(path string, lines int) ([]string, error) {
	data, err := readTail(path)
	if err != nil {
		return nil, session.WrapError(err, session.CodeServerInternal, "The log cannot be read.",
			"Check the permissions of "+path+".")
	}
	text := strings.TrimRight(r.Text(string(data)), "\n")
	if text == "" {
		return []string{}, nil
	}
	all := strings.Split(text, "\n")
	return all[max(0, len(all)-lines):], nil
}

// readTail reads the last complete lines of a file. A missing file has none.
func readTail(path string) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	begin := max(0, info.Size()-tailMost)
	data, err := io.ReadAll(io.NewSectionReader(file, begin, 2*tailMost))
	if begin > 0 { // the first line is cut
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	return data, err
}
