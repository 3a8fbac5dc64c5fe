package link

import (
	"encoding/base64"
	"encoding/hex"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"slipway/backend/session"
)

// The guest is Slipway's own, and what it tells is not: names of programs, what
// they have printed, ports, the files of a home. All of it may be a stranger's
// work, and the agent hands it on. So each answer has a type of its own whose
// check leaves nothing in it that it may not say: texts are cut and cleaned of
// control characters, entries that make no sense are left out, and where nothing
// is left to tell the call fails. See [readReply], which takes no other types.
type answer interface{ check() error }

// How long the parts of an answer may be.
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

// line makes one line of a text, fit to be shown.
func line(text string, most int) string {
	return clean(text, most, func(r rune) bool { return false })
}

// lines keeps the lines of a text.
func lines(text string, most int) string {
	return clean(text, most, func(r rune) bool { return r == '\n' })
}

func clean(text string, most int, keep func(rune) bool) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case keep(r):
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

// absolute reports whether a path may be one of the container's.
func absolute(p string) bool {
	return len(p) <= maxTold && path.IsAbs(p) && line(p, maxTold) == p
}

// checkCause leaves a failure that somebody in the session may have written.
func checkCause(c *session.Cause) *session.Cause {
	if c == nil {
		return nil
	}
	code := c.Code
	if len(code) > 100 || !codeRule.MatchString(string(code)) {
		code = session.CodeAgentReply
	}
	told := session.Error{Code: code, Message: lines(c.Message, maxMessage), Hint: lines(c.Hint, maxMessage)}
	return told.Cause()
}

func (h *Hello) check() error { return nil }

// check implements answer, for what the guest tells by itself.
func (e *Event) check() error {
	e.OOM = max(0, e.OOM)
	if e.Exit != nil {
		*e.Exit = min(max(0, *e.Exit), 255)
	}
	e.Error = checkCause(e.Error)
	return nil
}

type oneTerminal session.Terminal

func (t *oneTerminal) check() error {
	if !idRule.MatchString(t.ID) {
		return nonsense("the name of a terminal")
	}
	t.Title, t.Kernel = line(t.Title, maxTitle), ""
	t.Cols, t.Rows = min(max(1, t.Cols), maxSide), min(max(1, t.Rows), maxSide)
	t.Start = min(t.Start, t.End)
	if t.ExitCode != nil {
		*t.ExitCode = min(max(0, *t.ExitCode), 255)
	}
	return nil
}

type terminalList []session.Terminal

func (l *terminalList) check() error {
	*l = slices.DeleteFunc(*l, func(t session.Terminal) bool { return !idRule.MatchString(t.ID) })
	*l = (*l)[:min(len(*l), maxTerminals)]
	for i := range *l {
		if err := (*oneTerminal)(&(*l)[i]).check(); err != nil {
			return err
		}
	}
	return nil
}

type oneService Service

func (s *oneService) check() error {
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
	if s.ExitCode != nil {
		*s.ExitCode = min(max(0, *s.ExitCode), 255)
	}
	s.Error = checkCause(s.Error)
	return nil
}

type serviceList []Service

func (l *serviceList) check() error {
	kept := (*l)[:0]
	for _, s := range *l {
		if (*oneService)(&s).check() == nil && len(kept) < maxServices {
			kept = append(kept, s)
		}
	}
	*l = kept
	return nil
}

type portList []int

func (l *portList) check() error {
	*l = slices.DeleteFunc(*l, func(port int) bool { return port < 1 || port > 65535 })
	slices.Sort(*l)
	*l = slices.Compact(*l)
	*l = (*l)[:min(len(*l), maxPorts)]
	return nil
}

type foregroundList []Foreground

func (l *foregroundList) check() error {
	*l = slices.DeleteFunc(*l, func(f Foreground) bool { return !idRule.MatchString(f.Terminal) })
	*l = (*l)[:min(len(*l), maxTerminals)]
	for i := range *l {
		(*l)[i].Program = line((*l)[i].Program, maxTitle)
	}
	return nil
}

type installed map[string]string

func (p *installed) check() error {
	maps.DeleteFunc(*p, func(_, at string) bool { return !absolute(at) })
	return nil
}

type sshHost session.SSHHost

func (h *sshHost) check() error {
	_, encoded, _ := strings.Cut(h.Key, " ")
	if _, err := base64.StdEncoding.DecodeString(encoded); err != nil || len(h.Key) > maxTold ||
		!keyRule.MatchString(h.Key) {
		return nonsense("a key of its ssh server")
	}
	return nil
}

type sshUse session.SSHUse

func (u *sshUse) check() error {
	u.Program = line(u.Program, maxTitle)
	return nil
}

type fileInfo session.FileInfo

// check lets a name be any bytes that the kernel lets a name be, since people's
// files have such names; whoever shows one cleans it.
func (f *fileInfo) check() error {
	name := string(f.Name)
	if name != "/" && (name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name,
		"/\x00")) {
		return nonsense("the name of a file")
	}
	if !slices.Contains([]session.FileKind{session.KindFile, session.KindDirectory, session.KindOther}, f.Kind) ||
		f.Size < 0 {
		return nonsense("a file")
	}
	f.Mode, f.Version = f.Mode&0o7777, line(f.Version, maxTitle)
	return nil
}

type fileListing session.FileListing

func (l *fileListing) check() error {
	if len(l.Path) > maxTold || !path.IsAbs(string(l.Path)) || strings.Contains(string(l.Path), "\x00") {
		return nonsense("a directory")
	}
	kept := l.Entries[:0]
	for _, f := range l.Entries {
		if f.Name != "/" && (*fileInfo)(&f).check() == nil && len(kept) < session.MaxListed {
			kept = append(kept, f)
		}
	}
	l.Entries, l.Total = kept, max(l.Total, len(kept))
	return nil
}

type checksum string

func (s *checksum) check() error {
	if sum, err := hex.DecodeString(string(*s)); err != nil || len(sum) != 32 {
		return nonsense("a checksum")
	}
	return nil
}

type offset int64

func (o *offset) check() error {
	if *o < 0 {
		return nonsense("a length")
	}
	return nil
}
