// Package vet checks values that another machine sent, before anything uses them.
//
// An agent is run by somebody else. What it sends may be wrong by mistake or on purpose, and reaches configuration
// files, terminals, addresses and timers from here. So every field of every type that an agent sends has a [Rule]:
// those of named types such as [session.ID] by their type, plain ones by the tables of this package. A field without a
// rule is a failing test, and is refused.
//
// Names, ids, paths, references, sizes and times that break their rule make the whole answer invalid. Sentences and
// titles for people, in which a stranger's process or image may be named, are cleaned instead: control characters go.
package vet

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Fault says what is wrong with a value. Both texts are safe to print.
type Fault struct {
	Field   string // its path, for example "reset.sessions[3].id"
	Problem string // for example "\"a\\nb\" is not the id of a session"
}

func (f *Fault) Error() string {
	if f.Field == "" {
		return f.Problem
	}
	return f.Field + ": " + f.Problem
}

// within names the part of a larger value in which a fault is.
func (f *Fault) within(part string) *Fault {
	switch {
	case f.Field == "" || strings.HasPrefix(f.Field, "["):
		f.Field = part + f.Field
	default:
		f.Field = part + "." + f.Field
	}
	return f
}

// Fields are the rules of a struct's fields, by their Go names. A field that is left out is decided by its type.
type Fields map[string]Rule

// Tables are rules of types.
type Tables struct {
	Types  map[reflect.Type]Rule
	Fields map[reflect.Type]Fields
}

// Gate checks values by tables. It is safe for concurrent use.
type Gate struct {
	tables []Tables
	mu     sync.Mutex // held while plans are made
	plans  sync.Map   // reflect.Type → *plan
}

// New returns a gate with the tables of this package and further ones.
func New(further ...Tables) *Gate {
	return &Gate{tables: append(further, common, sessions, devices, images, places)}
}

// usual is the gate with the tables of this package only.
var usual = sync.OnceValue(func() *Gate { return New() })

// Check checks what to points to by the tables of this package.
func Check(to any) error { return usual().Check(to) }

// Check checks what to points to and cleans its texts. It fails with a [*Fault].
func (g *Gate) Check(to any) error {
	v := reflect.ValueOf(to)
	p, err := g.plan(v.Type().Elem())
	if err != nil {
		return &Fault{Problem: err.Error()}
	}
	if fault := p.check(v.Elem()); fault != nil {
		return fault
	}
	return nil
}

// Weight bounds the memory that decoding takes: how many bytes at most one JSON object of a type, or of any type in it,
// becomes.
func (g *Gate) Weight(of reflect.Type) (int, error) {
	p, err := g.plan(of)
	if err != nil {
		return 0, err
	}
	return p.weight, nil
}

// check looks at one value, which is addressable.
type check func(v reflect.Value) *Fault

// plan is how values of one type are checked.
type plan struct {
	check  check
	weight int // size of the largest type in it
}

// plan returns the plan of a type; it fails where a field has no rule.
func (g *Gate) plan(t reflect.Type) (made *plan, err error) {
	if p, ok := g.plans.Load(t); ok {
		return p.(*plan), nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	b := builder{gate: g, structs: map[reflect.Type]*plan{}}
	defer func() {
		switch why := recover().(type) {
		case nil:
		case misfit:
			err = misfit(strings.Join(b.at, "")) + why
		default:
			panic(why)
		}
	}()
	p := &plan{check: b.build(t, Rule{})}
	p.weight = b.weight
	g.plans.Store(t, p)
	return p, nil
}

// misfit is a rule that does not fit a type, or a type without one. The building of a plan panics with it.
type misfit string

func (m misfit) Error() string { return string(m) }

// must panics with a [misfit] unless ok.
func must(ok bool, format string, args ...any) {
	if !ok {
		panic(misfit(fmt.Sprintf(format, args...)))
	}
}

// builder makes one plan.
type builder struct {
	gate    *Gate
	structs map[reflect.Type]*plan // also those under way, since types may hold themselves
	at      []string               // the fields under way
	weight  int
}

// build returns the check of a type under a rule; the zero rule leaves the decision to the type.
func (b *builder) build(t reflect.Type, rule Rule) check {
	b.weight = max(b.weight, int(t.Size()))
	if t.Kind() == reflect.Pointer {
		return b.pointer(t, rule)
	}
	if rule.build == nil {
		rule = b.gate.ofType(t)
	}
	if rule.build != nil {
		return rule.build(b, t)
	}
	if t.Kind() == reflect.Bool {
		return anything
	}
	must(t.Kind() == reflect.Struct, "%s has no rule", t)
	return b.structure(t)
}

func (b *builder) pointer(t reflect.Type, rule Rule) check {
	of := b.build(t.Elem(), rule)
	return func(v reflect.Value) *Fault {
		if v.IsNil() {
			return nil
		}
		fault := of(v.Elem())
		if fault != nil && rule.drop {
			v.SetZero()
			return nil
		}
		return fault
	}
}

// ofType is the rule of a type, the zero one where it has none.
func (g *Gate) ofType(t reflect.Type) Rule {
	for _, table := range g.tables {
		if rule, ok := table.Types[t]; ok {
			return rule
		}
	}
	return Rule{}
}

func (g *Gate) fieldsOf(t reflect.Type) Fields {
	for _, table := range g.tables {
		if fields, ok := table.Fields[t]; ok {
			return fields
		}
	}
	return nil
}

// field is one field of a struct that can be wrong.
type field struct {
	index int
	name  string // in JSON; empty: its own fields stand for it
	check check
}

func (b *builder) structure(t reflect.Type) check {
	p, known := b.structs[t]
	if !known {
		p = &plan{}
		b.structs[t] = p
		fields := b.fields(t)
		p.check = func(v reflect.Value) *Fault {
			for i := range fields {
				if fault := fields[i].check(v.Field(fields[i].index)); fault != nil {
					if fields[i].name == "" {
						return fault
					}
					return fault.within(fields[i].name)
				}
			}
			return nil
		}
	}
	return func(v reflect.Value) *Fault { return p.check(v) }
}

func (b *builder) fields(t reflect.Type) (fields []field) {
	rules := b.gate.fieldsOf(t)
	for name := range rules {
		f, there := t.FieldByName(name)
		must(there && len(f.Index) == 1, "%s has a rule for %s, which it does not have", t, name)
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		b.at = append(b.at, t.String()+"."+f.Name+": ")
		c := b.build(f.Type, rules[f.Name])
		b.at = b.at[:len(b.at)-1]
		switch {
		case f.Type.Kind() == reflect.Bool:
			continue
		case name == "" && f.Anonymous:
		case name == "":
			name = f.Name
		}
		fields = append(fields, field{i, name, c})
	}
	return fields
}

// Quote writes a text that another machine sent so that it can be printed anywhere.
func Quote(text string) string {
	const most = 48
	if len(text) > most {
		return strconv.QuoteToASCII(text[:most]) + "…"
	}
	return strconv.QuoteToASCII(text)
}
