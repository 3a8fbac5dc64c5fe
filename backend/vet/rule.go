package vet

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Rule says which values of a type are valid.
type Rule struct {
	// build returns the check of a type; it panics with a [misfit] if the rule is not for that type.
	build func(b *builder, t reflect.Type) check
	drop  bool // an invalid value that a pointer leads to is removed
}

// Free allows every value.
var Free = Rule{build: func(*builder, reflect.Type) check { return anything }}

func anything(reflect.Value) *Fault { return nil }

// simple returns a rule of types that fit, described by what. wrong returns what is wrong with a value, or "".
func simple(what string, fits func(reflect.Type) bool, wrong func(v reflect.Value) string) Rule {
	return Rule{build: func(_ *builder, t reflect.Type) check {
		must(fits(t), "%s is not %s", t, what)
		return func(v reflect.Value) *Fault {
			if problem := wrong(v); problem != "" {
				return &Fault{Problem: problem}
			}
			return nil
		}
	}}
}

func isText(t reflect.Type) bool { return t.Kind() == reflect.String }

// Text allows texts for which good returns true. what describes them: "the id of a session".
func Text(what string, good func(string) bool) Rule {
	return simple("a text", isText, func(v reflect.Value) string {
		if text := v.String(); !good(text) {
			return Quote(text) + " is not " + what
		}
		return ""
	})
}

// Maybe allows the zero value as well.
func Maybe(rule Rule) Rule {
	return around(rule, func(c check, v reflect.Value) *Fault {
		if v.IsZero() {
			return nil
		}
		return c(v)
	})
}

// around returns a rule that decides with the check of another one.
func around(rule Rule, decide func(c check, v reflect.Value) *Fault) Rule {
	return Rule{build: func(b *builder, t reflect.Type) check {
		c := rule.build(b, t)
		return func(v reflect.Value) *Fault { return decide(c, v) }
	}}
}

// OrNone sets a pointer to nil if its value is invalid.
func OrNone() Rule {
	return Rule{drop: true, build: func(b *builder, t reflect.Type) check { return b.build(t, Rule{}) }}
}

// Both allows what both rules allow.
func Both(a, b Rule) Rule {
	return Rule{build: func(of *builder, t reflect.Type) check {
		one, two := a.build(of, t), b.build(of, t)
		return func(v reflect.Value) *Fault {
			if fault := one(v); fault != nil {
				return fault
			}
			return two(v)
		}
	}}
}

// OneOf allows the known texts.
func OneOf[T ~string](known ...T) Rule {
	set := make(map[string]bool, len(known))
	for _, one := range known {
		set[string(one)] = true
	}
	return Text("known here", func(text string) bool { return set[text] })
}

// Line allows a text of one line for people. It is cleaned and cut to most bytes.
func Line(most int) Rule { return cleaned(most, false) }

// Prose is like [Line] for several lines.
func Prose(most int) Rule { return cleaned(most, true) }

func cleaned(most int, lines bool) Rule {
	return simple("a text", isText, func(v reflect.Value) string {
		if text := v.String(); !plain(text, most) {
			v.SetString(clean(text, most, lines))
		}
		return ""
	})
}

// plain reports whether a text is printable ASCII and not too long, as most are.
func plain(text string, most int) bool {
	if len(text) > most {
		return false
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// clean cuts a text and replaces characters that [acts] finds.
func clean(text string, most int, lines bool) string {
	if len(text) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return strings.Map(func(r rune) rune {
		if acts(r) && !(lines && (r == '\n' || r == '\t')) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// acts reports whether a character does something other than appear: a control character, a line separator, or one that
// changes the direction of a text.
func acts(r rune) bool {
	return unicode.IsControl(r) || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// still reports whether no character of a text [acts].
func still(text string, most int) bool {
	return plain(text, most) || len(text) <= most && !strings.ContainsFunc(text, acts)
}

// Bytes allows a text that is passed on unchanged, such as a command: anything except zero bytes.
func Bytes(most int) Rule {
	return Text("a text without zero bytes of at most "+strconv.Itoa(most), func(text string) bool {
		return len(text) <= most && strings.IndexByte(text, 0) < 0
	})
}

// Whole allows whole numbers from least to most.
func Whole(least, most int64) Rule {
	isWhole := func(t reflect.Type) bool { return reflect.Zero(t).CanUint() || reflect.Zero(t).CanInt() }
	return simple("a whole number", isWhole, func(v reflect.Value) string {
		switch {
		case v.CanUint() && v.Uint() > uint64(most):
			return fmt.Sprintf("%d is not between %d and %d", v.Uint(), least, most)
		case v.CanInt() && (v.Int() < least || v.Int() > most):
			return fmt.Sprintf("%d is not between %d and %d", v.Int(), least, most)
		}
		return ""
	})
}

// Number allows numbers from least to most.
func Number(least, most float64) Rule {
	isFloat := func(t reflect.Type) bool { return t.Kind() == reflect.Float64 }
	return simple("a number", isFloat, func(v reflect.Value) string {
		if n := v.Float(); math.IsNaN(n) || n < least || n > most {
			return fmt.Sprintf("%g is not between %g and %g", n, least, most)
		}
		return ""
	})
}

// Moment allows times from 1970 to 2200, or zero.
var Moment = Each(func(at *time.Time) string {
	if year := at.UTC().Year(); at.IsZero() || year >= 1970 && year < 2200 {
		return ""
	}
	return strconv.Itoa(at.Year()) + " is not a year between 1970 and 2200"
})

// OrZero replaces an invalid value by the zero value. It is for what a stranger wrote and an honest agent only passes
// on.
func OrZero(rule Rule) Rule {
	return around(rule, func(c check, v reflect.Value) *Fault {
		if c(v) != nil {
			v.SetZero()
		}
		return nil
	})
}

// Each allows values of one type; wrong returns what is wrong with a value, or "".
func Each[T any](wrong func(*T) string) Rule {
	isT := func(t reflect.Type) bool { return t == reflect.TypeFor[T]() }
	return simple(reflect.TypeFor[T]().String(), isT, func(v reflect.Value) string {
		return wrong(v.Addr().Interface().(*T)) //nolint:forcetypeassert // isT has checked it
	})
}

// Together allows structs whose fields are valid by themselves and of which wrong returns "".
func Together[T any](wrong func(*T) string) Rule {
	alone := Rule{build: func(b *builder, t reflect.Type) check { return b.structure(t) }}
	return Both(alone, Each(wrong))
}

// List allows lists with at most so many elements, each under a rule or, if there is none, under that of its type.
func List(most int, element ...Rule) Rule {
	return Rule{build: func(b *builder, t reflect.Type) check {
		must(t.Kind() == reflect.Slice, "%s is not a list", t)
		of := b.build(t.Elem(), first(element))
		return func(v reflect.Value) *Fault {
			if v.Len() > most {
				return &Fault{Problem: fmt.Sprintf("%d are more than %d", v.Len(), most)}
			}
			for i := range v.Len() {
				if fault := of(v.Index(i)); fault != nil {
					return fault.within("[" + strconv.Itoa(i) + "]")
				}
			}
			return nil
		}
	}}
}

// GoodOf is like [List] but removes invalid elements.
func GoodOf(most int, element Rule) Rule {
	return Rule{build: func(b *builder, t reflect.Type) check {
		whole, of := List(most, Free).build(b, t), b.build(t.Elem(), element)
		return func(v reflect.Value) *Fault {
			if fault := whole(v); fault != nil {
				return fault
			}
			kept := 0
			for i := range v.Len() {
				if of(v.Index(i)) == nil {
					v.Index(kept).Set(v.Index(i))
					kept++
				}
			}
			v.SetLen(kept)
			return nil
		}
	}}
}

// Table allows maps with at most so many entries.
func Table(most int, key Rule, element ...Rule) Rule {
	return Rule{build: func(b *builder, t reflect.Type) check {
		must(t.Kind() == reflect.Map, "%s is not a table", t)
		keys, of := b.build(t.Key(), key), b.build(t.Elem(), first(element))
		return func(v reflect.Value) *Fault {
			if v.Len() > most {
				return &Fault{Problem: fmt.Sprintf("%d are more than %d", v.Len(), most)}
			}
			for at := v.MapRange(); at.Next(); {
				name, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
				name.Set(at.Key())
				value.Set(at.Value())
				if fault := keys(name); fault != nil {
					return fault
				}
				if fault := of(value); fault != nil {
					return fault.within("[" + Quote(at.Key().String()) + "]")
				}
				v.SetMapIndex(at.Key(), value) // its texts may be cleaned
			}
			return nil
		}
	}}
}

func first(rules []Rule) Rule {
	if len(rules) == 0 {
		return Rule{}
	}
	return rules[0]
}
