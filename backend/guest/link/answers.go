package link

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"slipway/backend/session"
)

// check makes an answer safe to pass on. Most of it comes from programs in the session, which are not trusted: their
// names and output, ports, the files of a home. Texts are shortened and lose control characters, and invalid entries of
// a list are dropped. Another invalid answer fails, and so does one of an unknown type.
func check(answer any) error {
	switch a := answer.(type) {
	case *Hello:
		return nil
	case *session.Terminal:
		return checkTerminal(a)
	case *[]session.Terminal:
		*a = good(*a, maxTerminals, checkTerminal)
	case *Service:
		return checkService(a)
	case *[]Service:
		*a = good(*a, maxServices, checkService)
	case *[]Foreground:
		*a = good(*a, maxTerminals, checkForeground)
	case *[]Unkept:
		*a = good(*a, maxServices, checkUnkept)
	case *[]int:
		ports := slices.DeleteFunc(*a, func(port int) bool { return port < 1 || port > 65535 })
		slices.Sort(ports)
		ports = slices.Compact(ports)
		*a = ports[:min(len(ports), maxPorts)]
	case *map[string]string:
		maps.DeleteFunc(*a, func(_, at string) bool { return !absolute(at) })
	case *session.SSHHost:
		return checkHost(a)
	case *session.SSHUse:
		a.Program = clean(a.Program, maxTitle, "")
	case *session.FileInfo:
		return checkFile(a)
	case *session.FileListing:
		return checkListing(a)
	case *string:
		if sum, err := hex.DecodeString(*a); err != nil || len(sum) != sha256.Size {
			return nonsense("a checksum")
		}
	case *int64:
		if *a < 0 {
			return nonsense("a length")
		}
	default:
		return nonsense(fmt.Sprintf("%T", answer))
	}
	return nil
}

// DecodeUnkept decodes the answer of the service that keeps the output of notebooks.
func DecodeUnkept(body []byte) (list []Unkept, err error) {
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	return list, check(&list)
}

// good returns the valid entries of a list, with a maximum number.
func good[T any](list []T, most int, check func(*T) error) []T {
	kept := list[:0]
	for _, one := range list {
		if check(&one) == nil && len(kept) < most {
			kept = append(kept, one)
		}
	}
	return kept
}

const (
	maxTitle     = 200  // characters of a title, or of a program's name
	maxMessage   = 8192 // characters of a message, which may have lines
	maxTold      = 4096 // bytes of a path or a key
	maxTerminals = 256
	maxServices  = 256
	maxPorts     = 4096
	maxSide      = 4096 // columns or rows of a terminal
)

var (
	idRule   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	codeRule = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*(_[a-z0-9]+(-[a-z0-9]+)*){1,3}$`)
	keyRule  = regexp.MustCompile(`^[a-z0-9@.-]+ [A-Za-z0-9+/]+=*$`)
)

func nonsense(what string) error {
	return session.NewError(session.CodeAgentReply, "The session sent invalid data: "+what+".",
		"Something in the session may interfere with Slipway. Start it again, and do not trust its image.")
}

// clean makes a text safe to display: it removes control characters except those in keep, and shortens it.
func clean(text string, most int, keep string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(keep, r):
			return r
		case unicode.IsSpace(r):
			return ' '
		case unicode.Is(unicode.C, r) && r != '\u200d', r == utf8.RuneError: // a joiner holds letters together
			return -1
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return text
}

// absolute reports whether a path is valid in the container and safe to display.
func absolute(p string) bool {
	return len(p) <= maxTold && path.IsAbs(p) && clean(p, maxTold, "") == p
}

// checkCause cleans a failure, which may come from a program in the session.
func checkCause(c *session.Cause) *session.Cause {
	if c == nil {
		return nil
	}
	code := c.Code
	if len(code) > 100 || !codeRule.MatchString(string(code)) {
		code = session.CodeAgentReply
	}
	message, hint := clean(c.Message, maxMessage, "\n"), clean(c.Hint, maxMessage, "\n")
	return (&session.Error{Code: code, Message: message, Hint: hint}).Cause()
}

func (e *Event) check() {
	e.OOM = max(0, e.OOM)
	checkExit(e.Exit)
	e.Error = checkCause(e.Error)
}

func checkExit(code *int) {
	if code != nil {
		*code = min(max(0, *code), 255)
	}
}

func checkTerminal(t *session.Terminal) error {
	if !idRule.MatchString(t.ID) {
		return nonsense("the name of a terminal")
	}
	t.Title, t.Kernel = clean(t.Title, maxTitle, ""), ""
	t.Cols, t.Rows = min(max(1, t.Cols), maxSide), min(max(1, t.Rows), maxSide)
	t.Start = min(t.Start, t.End)
	checkExit(t.ExitCode)
	return nil
}

func checkService(s *Service) error {
	if !idRule.MatchString(s.ID) || s.Port < 0 || s.Port > 65535 {
		return nonsense("an app")
	}
	if !absolute(s.Dir) {
		s.Dir = ""
	}
	switch s.State {
	case ServiceStarting, ServiceReady, ServiceExited, ServiceFailed:
	default:
		s.State = ServiceFailed
	}
	checkExit(s.ExitCode)
	s.Error = checkCause(s.Error)
	return nil
}

// checkUnkept leaves no entry out, so that nothing seems to be kept that is not.
func checkUnkept(u *Unkept) error {
	u.Notebook = clean(u.Notebook, maxTitle, "")
	if u.Why != WhyEncrypted && u.Why != WhyUnreadable {
		u.Why = WhyUnreachable
	}
	return nil
}

func checkForeground(f *Foreground) error {
	if !idRule.MatchString(f.Terminal) {
		return nonsense("the name of a terminal")
	}
	f.Program = clean(f.Program, maxTitle, "")
	return nil
}

func checkHost(h *session.SSHHost) error {
	_, encoded, _ := strings.Cut(h.Key, " ")
	if _, err := base64.StdEncoding.DecodeString(encoded); err != nil || len(h.Key) > maxTold ||
		!keyRule.MatchString(h.Key) {
		return nonsense("a key of its ssh server")
	}
	return nil
}

// checkFile allows every name that the kernel allows, because files have such names. The user interface cleans them.
func checkFile(f *session.FileInfo) error {
	name := string(f.Name)
	if name != "/" && (name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name,
		"/\x00")) {
		return nonsense("the name of a file")
	}
	if !slices.Contains([]session.FileKind{session.KindFile, session.KindDirectory, session.KindOther}, f.Kind) ||
		f.Size < 0 {
		return nonsense("a file")
	}
	if len(f.Target) > maxTold || strings.Contains(string(f.Target), "\x00") || !f.Link && f.Target != "" {
		return nonsense("the target of a link")
	}
	f.Mode, f.Version = f.Mode&0o7777, clean(f.Version, maxTitle, "")
	return nil
}

func checkListing(l *session.FileListing) error {
	if len(l.Path) > maxTold || !path.IsAbs(string(l.Path)) || strings.Contains(string(l.Path), "\x00") {
		return nonsense("a directory")
	}
	l.Entries = good(l.Entries, session.MaxListed, func(f *session.FileInfo) error {
		if f.Name == "/" {
			return nonsense("the name of a file")
		}
		return checkFile(f)
	})
	l.Total = max(l.Total, len(l.Entries))
	return nil
}
