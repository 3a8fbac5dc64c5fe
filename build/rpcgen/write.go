package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"
)

//go:embed methods.tmpl
var templateText string

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"title": title, "tellsAgent": func() map[string]string { return tellsAgent },
	"through": func(m placedMethod, begin string) any { return map[string]any{"Method": m, "Begin": begin} },
}).Parse(templateText))

// generation is the input of one file.
type generation struct {
	Hand    hand // what its package has by hand
	Methods []*method
}

// tellsAgent are the results that name their agent.
var tellsAgent = map[string]string{
	"session.Session": "session", "session.Folder": "folder", "[]session.Session": "sessions",
	"[]session.Folder": "folders",
}

func title(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

func (m *method) Sent() []*param {
	return slices.DeleteFunc(slices.Clone(m.Params), func(p *param) bool {
		return p.Type == "io.Reader" || strings.HasPrefix(p.Type, "func(")
	})
}

// Kind is the kind of a call.
func (m *method) Kind() string {
	switch last := m.Last().Type; {
	case strings.HasPrefix(last, "func("):
		return "feed"
	case last == "io.Reader":
		return "upload"
	case m.Result == "io.ReadCloser":
		return "download"
	case m.Result == "io.ReadWriteCloser", m.Result == "net.Conn":
		return "duplex"
	}
	return "plain"
}

func (m *method) IsCall() bool { return m.Kind() == "plain" || m.Kind() == "upload" }

func (m *method) Last() *param {
	if len(m.Params) == 0 {
		return &param{}
	}
	return m.Params[len(m.Params)-1]
}

func (m *method) Event() string {
	return strings.TrimSuffix(strings.TrimPrefix(m.Last().Type, "func("), ") error")
}

// Named writes the parameters with their types, on two lines if there are several.
func (m *method) Named() string {
	text, space := "ctx context.Context", " "
	if len(m.Params) > 1 {
		space = "\n"
	}
	for _, p := range m.Params {
		text += fmt.Sprintf(",%s%s %s", space, p.Name, p.Type)
		space = " "
	}
	return text
}

func (m *method) Given() string {
	text := "ctx"
	for _, p := range m.Params {
		text += ", " + p.Name
	}
	return text
}

func (m *method) Results() string {
	if m.Result == "" {
		return "error"
	}
	return "(" + m.Result + ", error)"
}

// Answer is the type of the answer on the wire.
func (m *method) Answer() string { return cmp.Or(m.Reply, m.Result, "none") }

// Gives is the result of the handler's call of the agent.
func (m *method) Gives() string {
	return map[string]string{"feed": "error", "download": "(downloaded, error)",
		"duplex": "(io.ReadWriteCloser, error)", "plain": "(" + m.Answer() + ", error)",
		"upload": "(" + m.Answer() + ", error)"}[m.Kind()]
}

func (m *method) ArgsType() string {
	switch sent := m.Sent(); {
	case len(sent) == 0:
		return "none"
	case m.IsAlone:
		return sent[0].Type
	}
	return m.Inner() + "Args"
}

// Inner is the method's unexported name.
func (m *method) Inner() string {
	if rest, is := strings.CutPrefix(m.Name, "SSH"); is {
		return "ssh" + rest
	}
	return strings.ToLower(m.Name[:1]) + m.Name[1:]
}

// Args writes the arguments, made of the parameters.
func (m *method) Args() string {
	if m.IsAlone {
		return m.Sent()[0].Name
	}
	var fields []string
	for _, p := range m.Sent() {
		fields = append(fields, p.Field+": "+p.Name)
	}
	return m.ArgsType() + "{" + strings.Join(fields, ", ") + "}"
}

// Forward writes how the handler calls the agent.
func (m *method) Forward() string {
	given := "ctx"
	for _, p := range m.Params {
		switch {
		case p.Field == "":
			given += ", " + p.Name
		case m.IsAlone:
			given += ", r"
		default:
			given += ", r." + p.Field
		}
	}
	call := fmt.Sprintf("a.%s(%s)", m.Name, given)
	nothing := ""
	if m.Result == "" {
		nothing = "none{}, "
	}
	switch {
	case m.admin:
		return fmt.Sprintf("return administered(a, %q, func(k session.Admin) (%s, error) {\nreturn %sk%s\n})", m.Wire,
			m.Answer(), nothing, call[1:])
	case m.Kind() == "download": // what is resumed is another call
		return fmt.Sprintf("stream, err := %s\nreturn downloaded{ReadCloser: stream, offset: -1}, err", call)
	case m.Kind() == "feed":
		return "return " + call
	case m.Reply != "":
		return fmt.Sprintf("result, err := %s\nreturn %s(result), err", call, m.Reply)
	}
	return "return " + nothing + call
}

// fits are checks that an answer is about what the call named.
var fits = map[string]string{
	"id session.ID → session.Session":      "ofSession(id)",
	"id session.FolderID → session.Folder": "ofFolder(id)",
	"id string → session.ImageWork":        "ofWork(id)",
}

// Call writes how the client makes a call with one answer, and its check.
func (m *method) Call(byHand hand) string {
	if m.Kind() == "upload" {
		return fmt.Sprintf("method%s.send(ctx, c, %s, %s)", m.Name, m.Args(), m.Last().Name)
	}
	fit := ""
	if check := "check" + m.Name; byHand[check] {
		fit = fmt.Sprintf(",\n%s(%s)", check, m.Args())
	} else if len(m.Params) > 0 && fits[m.Params[0].Name+" "+m.Params[0].Type+" → "+m.Result] != "" {
		fit = ", " + fits[m.Params[0].Name+" "+m.Params[0].Type+" → "+m.Result]
	}
	return fmt.Sprintf("method%s.call(ctx, c, %s%s)", m.Name, m.Args(), fit)
}

func (m *method) LoggedAs() string { return cmp.Or(m.As, m.Name) }

// CheckRules fails unless exactly the methods with who=custom have a handwritten rule in package access.
func (g generation) CheckRules() (string, error) {
	for _, m := range g.Methods {
		switch byHand := g.Hand["view."+m.Name]; {
		case m.Who == whoCustom && !byHand:
			return "", fmt.Errorf("%s has who=custom: write (*view).%s in package access", m.Name, m.Name)
		case m.Who != whoCustom && byHand:
			return "", fmt.Errorf("%s has who=%s and a rule in package access: remove it, or write who=custom", m.Name,
				m.Who)
		}
	}
	return "", nil
}

// OwnerRule writes the beginning of the check that the first parameter is the caller's own.
func (m *method) OwnerRule() (string, error) {
	if len(m.Params) == 0 {
		return "", fmt.Errorf("%s: who=owner, and it names no session, folder or place", m.Name)
	}
	call, place, target := "did", m.Params[0].Name, `""`
	switch {
	case m.Who == whoBoth:
		call = "ordered"
	case m.Audit == "":
		call = "asked"
	}
	switch typ := m.Params[0].Type; typ {
	case "session.Place":
		target = fmt.Sprintf("inPlace(%s, %s)", place, cmp.Or(m.Audit, target))
	case "session.ID":
		place = fmt.Sprintf("session.Place{Session: %s}", place)
		if m.Audit != "" {
			target = fmt.Sprintf("target(%s)", m.auditValue())
		}
	case "session.FolderID":
		place, target = fmt.Sprintf("session.Place{Folder: %s}", place), fmt.Sprintf("inFolder(%s)", place)
	default:
		return "", fmt.Errorf("%s: who=owner, and a %s names no session, folder or place", m.Name, typ)
	}
	return fmt.Sprintf("%s(ctx, v, %q, %s, %s", call, m.LoggedAs(), place, target), nil
}

// auditValue writes the value for the audit log. A bool is logged by its name.
func (m *method) auditValue() string {
	if slices.ContainsFunc(m.Params, func(p *param) bool { return p.Name == m.Audit && p.Type == "bool" }) {
		return fmt.Sprintf("when(%s, %q)", m.Audit, m.Audit)
	}
	return m.Audit
}

// AnsweredIn reports whether a part of the agent for tests answers a method.
func (m *method) AnsweredIn(rooms hand) bool {
	for name := range rooms {
		if _, method, _ := strings.Cut(name, "."); method == m.Inner() {
			return true
		}
	}
	return false
}

// placedMethod is a method on the files of a place, without its place.
type placedMethod struct {
	*method
	Place string // name of the parameter that is left out
}

func (g generation) Placed() (found []placedMethod) {
	for _, m := range g.Methods {
		if len(m.Params) > 0 && m.Params[0].Type == "session.Place" {
			rest := *m
			rest.Params = m.Params[1:]
			found = append(found, placedMethod{&rest, m.Params[0].Name})
		}
	}
	return found
}

// NamedWithPlace writes the parameters, including the place.
func (m placedMethod) NamedWithPlace() string {
	return strings.Replace(m.Named(), ",", ",\n"+m.Place+" session.Place,", 1)
}

func (m placedMethod) WireOp() string { return strings.TrimPrefix(m.Wire, "file.") }

// Op is its constant in package link.
func (m placedMethod) Op() string { return "File" + title(m.WireOp()) }

func (p *param) IsPointer() bool { return p.Type != "session.FilePath" && p.Type != "bool" }

func (m placedMethod) GuestCall() string {
	call := "onFiles(FileCall{Op: " + m.Op()
	for _, p := range m.Sent() {
		value := p.Name
		if p.IsPointer() {
			value = "&" + value
		}
		call += ", " + p.Field + ": " + value
	}
	return call + "})"
}
