// Package vet checks values that another machine sent, before anything uses them.
//
// Somebody else runs the agent of another machine, and what it sends reaches configuration files, terminals, addresses
// and timers. So every field of every type that an agent sends has a [Rule], by its type, such as [session.ID], or in
// the tables of this package. A field without a rule fails a test and is refused.
//
// An invalid name, id, path, reference, size or time makes the whole answer invalid. Sentences and titles for people
// may name a stranger's process or image, so they are cleaned of control characters instead.
package vet

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Fault describes an invalid value. Both texts are safe to print.
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

// within prepends the name of the part of a larger value that the fault is in.
func (f *Fault) within(part string) *Fault {
	if f.Field != "" && !strings.HasPrefix(f.Field, "[") {
		part += "."
	}
	f.Field = part + f.Field
	return f
}

// Fields are the rules of a struct's fields, by their Go names. The type of a field that is left out decides.
type Fields map[string]Rule

// Tables are rules of types.
type Tables struct {
	Types  map[reflect.Type]Rule
	Fields map[reflect.Type]Fields
}

// Gate checks values by tables. It is safe for concurrent use.
type Gate struct {
	tables []Tables
	mu     sync.Mutex // one plan is made at a time
	plans  sync.Map   // reflect.Type → *plan
}

// New returns a gate with the tables of this package and others.
func New(further ...Tables) *Gate {
	return &Gate{tables: append(further, common, sessions, devices, images, places)}
}

var usual = sync.OnceValue(func() *Gate { return New() })

// Check is like [Gate.Check] with the tables of this package only.
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

// Weight returns the maximum number of bytes that one JSON object of a type, or of any type in it, takes when decoded.
func (g *Gate) Weight(of reflect.Type) (int, error) {
	p, err := g.plan(of)
	return p.weight, err
}

// check checks one value, which is addressable.
type check func(v reflect.Value) *Fault

// plan says how to check values of one type.
type plan struct {
	check  check
	weight int // size of the largest type in it
}

// plan returns the plan of a type; it fails if a field has no rule.
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
	made = &plan{}
	made.check = b.build(t, Rule{})
	made.weight = b.weight
	g.plans.Store(t, made)
	return made, nil
}

// misfit reports a rule that does not fit a type, or a type without one. Building a plan panics with it.
type misfit string

func (m misfit) Error() string { return string(m) }

func must(ok bool, format string, args ...any) {
	if !ok {
		panic(misfit(fmt.Sprintf(format, args...)))
	}
}

type builder struct {
	gate    *Gate
	structs map[reflect.Type]*plan // also unfinished ones, since types may contain themselves
	at      []string               // path of the current field
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
	name  string // in JSON; empty: embedded
	check check
}

func (b *builder) structure(t reflect.Type) check {
	p, known := b.structs[t]
	if !known {
		p = &plan{}
		b.structs[t] = p
		fields := b.fields(t)
		p.check = func(v reflect.Value) *Fault {
			for _, f := range fields {
				fault := f.check(v.Field(f.index))
				if fault != nil && f.name != "" {
					return fault.within(f.name)
				}
				if fault != nil {
					return fault
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
		if f.Type.Kind() == reflect.Bool {
			continue
		}
		if name == "" && !f.Anonymous {
			name = f.Name
		}
		fields = append(fields, field{i, name, c})
	}
	return fields
}

// Quote quotes a text of another machine so that it can be printed anywhere.
func Quote(text string) string {
	const most = 48
	if len(text) > most {
		return strconv.QuoteToASCII(text[:most]) + "…"
	}
	return strconv.QuoteToASCII(text)
}
