package main

import (
	"cmp"
	"fmt"
	"strings"
)

// named writes the parameters of a method with their types, on two lines where
// they are several.
func (m *method) named() string {
	text, space := "ctx context.Context", " "
	if len(m.params) > 1 {
		space = "\n"
	}
	for _, p := range m.params {
		text += fmt.Sprintf(",%s%s %s", space, p.name, p.typ)
		space = " "
	}
	return text
}

// given writes the arguments of a call with the parameters of the same method.
func (m *method) given() string {
	text := "ctx"
	for _, p := range m.params {
		text += ", " + p.name
	}
	return text
}

// results writes the results of a method.
func (m *method) results() string {
	if m.result == "" {
		return "error"
	}
	return "(" + m.result + ", error)"
}

// answer is the type of the answer on the wire.
func (m *method) answer() string {
	switch {
	case m.reply != "":
		return m.reply
	case m.result == "":
		return "none"
	}
	return m.result
}

// argsType is the type of the arguments.
func (m *method) argsType() string {
	switch sent := m.sent(); {
	case len(sent) == 0:
		return "none"
	case m.isAlone:
		return sent[0].typ
	}
	return m.inner() + "Args"
}

// inner is the method's name as one that is not exported.
func (m *method) inner() string {
	if rest, is := strings.CutPrefix(m.name, "SSH"); is {
		return "ssh" + rest
	}
	return strings.ToLower(m.name[:1]) + m.name[1:]
}

// args writes the arguments, made of the parameters.
func (m *method) args() string {
	sent := m.sent()
	if m.isAlone {
		return sent[0].name
	}
	var fields []string
	for _, p := range sent {
		fields = append(fields, p.field+": "+p.name)
	}
	return m.argsType() + "{" + strings.Join(fields, ", ") + "}"
}

// writeClient writes the arguments, the table and the client's methods.
func writeClient(w *writer, methods []method) error {
	for _, m := range methods {
		if typ := m.argsType(); len(m.sent()) > 0 && !m.isAlone && !w.hand[typ] {
			w.f("type %s struct {\n", typ)
			for _, p := range m.sent() {
				if p.tag == "" {
					w.f("%s\n", p.typ)
					continue
				}
				w.f("%s %s `json:%q`\n", p.field, p.typ, p.tag)
			}
			w.f("}\n\n")
		}
		w.entry(m)
		if !w.hand["Client."+m.name] {
			w.stub(m)
		}
	}
	w.f("// table is every method of an agent.\nvar table = []served{\n")
	for _, m := range methods {
		w.f("method%s,\n", m.name)
	}
	w.f("}\n")
	return nil
}

// entry writes the line of the table.
func (w *writer) entry(m method) {
	from, takes, gives := m.kind(), "", fmt.Sprintf("(%s, error)", m.answer())
	types := m.argsType() + ", " + m.answer()
	tail := ""
	switch from {
	case "feed":
		event := strings.TrimSuffix(strings.TrimPrefix(m.last().typ, "func("), ") error")
		types, takes, gives = m.argsType()+", "+event, ", "+m.last().name+" "+m.last().typ, "error"
	case "upload":
		takes = ", " + m.last().name + " io.Reader"
	case "download":
		types, gives, tail = m.argsType(), "(downloaded, error)", ", nil"
	case "duplex":
		types, gives = m.argsType(), "(io.ReadWriteCloser, error)"
	}
	w.f("var method%s = %s[%s]{\nspec{%q, tunnel.%s, %s, %s},\n", m.name, from, types, m.wire,
		strings.ToUpper(m.class[:1])+m.class[1:], m.effect, m.limit)
	if open := "open" + m.name; from == "download" && w.hand[open] {
		w.f("%s, %s.at}\n\n", open, m.argsType())
		return
	}
	args := "r"
	if len(m.sent()) == 0 {
		args = "_"
	}
	w.f("func(ctx context.Context, a session.Agent, %s %s%s) %s {\n", args, m.argsType(), takes, gives)
	w.f("%s\n}%s}\n\n", m.forward(from), tail)
}

// forward writes how the handler calls the agent.
func (m *method) forward(kind string) string {
	given := "ctx"
	for _, p := range m.params {
		switch {
		case p.field == "":
			given += ", " + p.name
		case m.isAlone:
			given += ", r"
		default:
			given += ", r." + p.field
		}
	}
	call := fmt.Sprintf("a.%s(%s)", m.name, given)
	switch {
	case m.admin:
		inner := fmt.Sprintf("return k.%s(%s)", m.name, given)
		if m.result == "" {
			inner = fmt.Sprintf("return none{}, k.%s(%s)", m.name, given)
		}
		return fmt.Sprintf("return administered(a, %q, func(k session.Admin) (%s, error) {\n%s\n})", m.wire, m.answer(),
			inner)
	case kind == "download": // what is resumed is another call
		return fmt.Sprintf("stream, err := %s\nreturn downloaded{ReadCloser: stream, offset: -1}, err", call)
	case kind == "feed":
		return "return " + call
	case m.result == "":
		return "return none{}, " + call
	case m.reply != "":
		return fmt.Sprintf("result, err := %s\nreturn %s(result), err", call, m.reply)
	}
	return "return " + call
}

// stub writes the client's method.
func (w *writer) stub(m method) {
	w.f("func (c *Client) %s(%s) %s {\n", m.name, m.named(), m.results())
	defer w.f("}\n\n")
	args := m.args()
	switch m.kind() {
	case "feed":
		w.f("return method%s.follow(ctx, c, %s, %s, check%s(%s))\n", m.name, args, m.last().name, m.name, args)
		return
	case "download", "duplex":
		w.f("return method%s.open(ctx, c, %s)\n", m.name, args)
		return
	}
	call := fmt.Sprintf("method%s.call(ctx, c, %s%s)", m.name, args, w.fit(m, args))
	if m.kind() == "upload" {
		call = fmt.Sprintf("method%s.send(ctx, c, %s, %s)", m.name, args, m.last().name)
	}
	switch {
	case m.result == "":
		w.f("_, err := %s\nreturn err\n", call)
	case m.reply != "":
		w.f("result, err := %s\nreturn %s(result), err\n", call, m.result)
	default:
		w.f("return %s\n", call)
	}
}

// fits are the checks of answers that describe what the call has named.
var fits = map[string]string{
	"id session.ID → session.Session":      "ofSession(id)",
	"id session.FolderID → session.Folder": "ofFolder(id)",
	"id string → session.ImageWork":        "ofWork(id)",
}

// fit writes what an answer must be about.
func (w *writer) fit(m method, args string) string {
	if check := "check" + m.name; w.hand[check] {
		return fmt.Sprintf(",\n%s(%s)", check, args)
	}
	if len(m.params) > 0 {
		if fit := fits[m.params[0].name+" "+m.params[0].typ+" → "+m.result]; fit != "" {
			return ", " + fit
		}
	}
	return ""
}

// writeRules writes who may call what.
func writeRules(w *writer, methods []method) error {
	for _, m := range methods {
		switch byHand := w.hand["view."+m.name]; {
		case m.who == whoCustom && !byHand:
			return fmt.Errorf("%s has who=custom: write (*view).%s in package access", m.name, m.name)
		case m.who != whoCustom && byHand:
			return fmt.Errorf("%s has who=%s and a rule in package access: remove it, or write who=custom", m.name,
				m.who)
		case byHand:
			continue
		}
		if err := w.rule(m); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// rule writes the method of one identity's agent.
func (w *writer) rule(m method) error {
	call := fmt.Sprintf("v.agent.%s(%s)", m.name, m.given())
	as := cmp.Or(m.as, m.name)
	if m.who == whoAnyone {
		w.f("func (v *view) %s(%s) %s { return %s }\n\n", m.name, m.named(), m.results(), call)
		return nil
	}
	var helper string
	takes := ""
	if m.who == whoAdmin {
		helper = fmt.Sprintf("administered(v, %q, %s, %t", as, cmp.Or(m.audit, `""`), m.audit != "")
		takes, call = "k session.Admin", strings.Replace(call, "v.agent.", "k.", 1)
	} else {
		var err error
		if helper, err = m.ownerRule(as); err != nil {
			return err
		}
	}
	gives := m.result
	if gives == "" {
		gives, call = "none", "only("+call+")"
	}
	w.f("func (v *view) %s(%s) %s {\n", m.name, m.named(), m.results())
	if m.result == "" {
		w.f("_, err := %s,\nfunc(%s) (%s, error) { return %s })\nreturn err\n", helper, takes, gives, call)
	} else {
		w.f("return %s,\nfunc(%s) (%s, error) { return %s })\n", helper, takes, gives, call)
	}
	w.f("}\n\n")
	return nil
}

// ownerRule writes the beginning of the call that asks whether what the first
// parameter names is the caller's own.
func (m *method) ownerRule(as string) (string, error) {
	if len(m.params) == 0 {
		return "", fmt.Errorf("who=owner, and it names no session, folder or place")
	}
	call, place, target := "did", m.params[0].name, `""`
	if m.audit == "" {
		call = "asked"
	}
	switch typ := m.params[0].typ; typ {
	case "session.Place":
		target = fmt.Sprintf("inPlace(%s, %s)", place, cmp.Or(m.audit, target))
	case "session.ID":
		place = fmt.Sprintf("session.Place{Session: %s}", place)
		if m.audit != "" {
			target = fmt.Sprintf("target(%s)", m.auditValue())
		}
	case "session.FolderID":
		place, target = fmt.Sprintf("session.Place{Folder: %s}", place), fmt.Sprintf("inFolder(%s)", place)
	default:
		return "", fmt.Errorf("who=owner, and a %s names no session, folder or place", typ)
	}
	return fmt.Sprintf("%s(ctx, v, %q, %s, %s", call, as, place, target), nil
}

// auditValue writes what the log is told. A condition is told by its name.
func (m *method) auditValue() string {
	for _, p := range m.params {
		if p.name == m.audit && p.typ == "bool" {
			return fmt.Sprintf("when(%s, %q)", p.name, p.name)
		}
	}
	return m.audit
}

// tellsAgent are the results that say on which agent they are.
var tellsAgent = map[string]string{
	"session.Session": "session", "session.Folder": "folder", "[]session.Session": "sessions",
	"[]session.Folder": "folders",
}

// writeRenamed writes the methods whose results name an agent.
func writeRenamed(w *writer, methods []method) error {
	for _, m := range methods {
		if fn := tellsAgent[m.result]; fn != "" && !w.hand["renamed."+m.name] {
			w.f("func (r *renamed) %s(%s) %s {\nreturn r.%s(r.Agent.%s(%s))\n}\n\n", m.name, m.named(), m.results(), fn,
				m.name, m.given())
		}
	}
	return nil
}

// writeFake writes the methods of the agent for tests: those that it has by hand,
// which fail while it is down and wait while it is mute, and an agent that answers
// nothing for all others. What is plain has the agent's lock.
func writeFake(w *writer, methods []method) error {
	w.f("// unanswered has the methods that an agent does not simulate.\ntype unanswered struct{}\n\n")
	answers := map[string]bool{} // by some room of the agent
	for name := range w.hand {
		_, method, _ := strings.Cut(name, ".")
		answers[method] = true
	}
	for _, m := range methods {
		if w.hand["base."+m.name] {
			continue
		}
		result, gives, hold := "result "+m.result+", err error", "result, err", "defer a.mu.Unlock()"
		if m.result == "" {
			result, gives = "err error", "err"
		}
		if m.kind() != "plain" {
			hold = "a.mu.Unlock()"
		}
		if !answers[m.inner()] {
			w.f("func (unanswered) %s(%s) (%s) {\nerr = unsupported(%q)\nreturn\n}\n\n", m.name, m.named(), result,
				m.name)
			continue
		}
		w.f("func (a *Agent) %s(%s) (%s) {\nif err = a.enter(ctx); err == nil {\n", m.name, m.named(), result)
		w.f("%s\n%s = a.%s(%s)\n}\nreturn\n}\n\n", hold, gives, m.inner(), m.given())
	}
	return nil
}
