// Package diagnose reads what Slipway has written down about itself so that a person may hand it to somebody else:
// without secrets, and without saying where the person's own folders are.
package diagnose

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"slipway/backend/session"
)

// Redactor takes secrets out of texts. The zero value knows the shapes of secrets alone.
type Redactor struct {
	secrets []string
	home    string
}

// NewRedactor knows secrets by their value, too. home is the person's folder and becomes ~; "": it is left as it is.
func NewRedactor(home string, secrets ...string) Redactor {
	r := Redactor{home: strings.TrimRight(home, "/")}
	for _, secret := range secrets {
		if secret != "" {
			r.secrets = append(r.secrets, secret)
		}
	}
	return r
}

const mask = "•••"

var (
	// assigned is a name with a value: in a log, an address, JSON, a shell or YAML.
	assigned = regexp.MustCompile(
		`([A-Za-z_][A-Za-z0-9_.-]*)(["']?[ \t]*[:=][ \t]*)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s&,;"'}]+)`)
	// quoted is a name with a value that stand between quotes together.
	quoted = regexp.MustCompile(`(["'])([A-Za-z_][A-Za-z0-9_]*)=([^"'\n]*)(["'])`)
	// bearer is the header that lets programs in, and its kin.
	bearer = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]+`)
	// login is whoever stands before the @ of an address.
	login = regexp.MustCompile(`(://[^\s/:@]+):[^\s/@]+@`)
	// keyBlock is a private key as files hold it, whole or cut off.
	keyBlock = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\z)`)
	// random is a text that looks drawn by chance: what tokens are made of.
	random = regexp.MustCompile(`\b(?:[a-z2-7]{40,}|[A-Za-z0-9_-]*(?:ghp_|hf_|sk-|xox[bp]-|AKIA)[A-Za-z0-9_-]{12,})`)
)

// codeNames are names of secrets that [session.SecretName] does not count among them, since a variable of a session may
// well be called so.
var codeNames = map[string]bool{"code": true, "pin": true, "cookie": true, "authorization": true}

// Text is text without secrets.
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

// maskAssigned looks for a secret within the value of what is none, too.
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

// isSecret judges a value by its name. An error's own code is what a report is about.
func isSecret(name, value string) bool {
	if strings.EqualFold(name, "code") && strings.Count(value, "_") >= 2 {
		return false
	}
	return session.SecretName(name) || codeNames[strings.ToLower(name)]
}

// tailMost is how much of the end of a file is read, in bytes.
const tailMost = 1 << 20

// Tail returns the newest lines of a log, oldest first, without secrets; none where there is no log yet.
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

// readTail reads the last whole lines of a file; nothing where there is none.
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
