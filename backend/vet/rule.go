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

// Rule says which values of a type are good.
type Rule struct {
	// build makes the check of a type; it panics with a [misfit] where the rule is not for that type.
	build func(b *builder, t reflect.Type) check
	drop  bool // what a pointer leads to is left out where it is not good
}

// Free is the rule of values that are good whatever they are.
var Free = Rule{build: func(*builder, reflect.Type) check { return anything }}

func anything(reflect.Value) *Fault { return nil }

// Text is the rule of texts for which good is true. what says what they are: "the id of a session".
func Text(what string, good func(string) bool) Rule {
	return texts(func(v reflect.Value) *Fault {
		if text := v.String(); !good(text) {
			return &Fault{Problem: Quote(text) + " is not " + what}
		}
		return nil
	})
}

func texts(c check) Rule {
	return Rule{build: func(_ *builder, t reflect.Type) check {
		must(t.Kind() == reflect.String, "%s is not a text", t)
		return c
	}}
}

// Maybe is a rule under which the zero value is good, too.
func Maybe(rule Rule) Rule {
	return around(rule, func(c check, v reflect.Value) *Fault {
		if v.IsZero() {
			return nil
		}
		return c(v)
	})
}

// around is a rule that decides with the check of another.
func around(rule Rule, decide func(c check, v reflect.Value) *Fault) Rule {
	return Rule{build: func(b *builder, t reflect.Type) check {
		c := rule.build(b, t)
		return func(v reflect.Value) *Fault { return decide(c, v) }
	}}
}

// OrNone leaves out what a pointer leads to where it breaks its rule.
func OrNone() Rule {
	return Rule{drop: true, build: func(b *builder, t reflect.Type) check { return b.build(t, Rule{}) }}
}

// Both is the rule of what is good under two rules.
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

// OneOf is the rule of texts that are one of those known.
func OneOf[T ~string](known ...T) Rule {
	set := make(map[string]bool, len(known))
	for _, one := range known {
		set[string(one)] = true
	}
	return Text("known here", func(text string) bool { return set[text] })
}

// Line is the rule of a short text for people, of one line. It is cleaned and cut to at most so many bytes.
func Line(most int) Rule { return cleaned(most, false) }

// Prose is the rule of a text for people that may have several lines.
func Prose(most int) Rule { return cleaned(most, true) }

func cleaned(most int, lines bool) Rule {
	return texts(func(v reflect.Value) *Fault {
		if text := v.String(); !plain(text, most) {
			v.SetString(clean(text, most, lines))
		}
		return nil
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

// clean replaces what can act on whoever prints a text, and cuts it.
func clean(text string, most int, lines bool) string {
	if len(text) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return strings.Map(func(r rune) rune {
		if lines && (r == '\n' || r == '\t') {
			return r
		}
		if acts(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// acts reports whether a character does something else than appear: a control character, a separator of lines, or one
// that turns the direction of a text.
func acts(r rune) bool {
	return unicode.IsControl(r) || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// still reports whether a text has only characters that appear.
func still(text string, most int) bool {
	return plain(text, most) || len(text) <= most && !strings.ContainsFunc(text, acts)
}

// Bytes is the rule of a text that is handed on byte by byte, such as a command: anything but zero bytes.
func Bytes(most int) Rule {
	return Text("a text without zero bytes of at most "+strconv.Itoa(most), func(text string) bool {
		return len(text) <= most && strings.IndexByte(text, 0) < 0
	})
}

// Whole is the rule of whole numbers from least to most.
func Whole(least, most int64) Rule {
	outside := func(number any) *Fault {
		return &Fault{Problem: fmt.Sprintf("%v is not between %d and %d", number, least, most)}
	}
	return Rule{build: func(_ *builder, t reflect.Type) check {
		if reflect.Zero(t).CanUint() {
			return func(v reflect.Value) *Fault {
				if n := v.Uint(); n > uint64(most) {
					return outside(n)
				}
				return nil
			}
		}
		must(reflect.Zero(t).CanInt(), "%s is not a whole number", t)
		return func(v reflect.Value) *Fault {
			if n := v.Int(); n < least || n > most {
				return outside(n)
			}
			return nil
		}
	}}
}

// Number is the rule of numbers from least to most.
func Number(least, most float64) Rule {
	return Rule{build: func(_ *builder, t reflect.Type) check {
		must(t.Kind() == reflect.Float64, "%s is not a number", t)
		return func(v reflect.Value) *Fault {
			if n := v.Float(); math.IsNaN(n) || n < least || n > most {
				return &Fault{Problem: fmt.Sprintf("%g is not between %g and %g", n, least, most)}
			}
			return nil
		}
	}}
}

// Moment is the rule of times: from 1970 to 2200, or zero.
var Moment = Each(func(at *time.Time) string {
	if year := at.UTC().Year(); at.IsZero() || year >= 1970 && year < 2200 {
		return ""
	}
	return strconv.Itoa(at.Year()) + " is not a year between 1970 and 2200"
})

// OrZero is a rule under which what is not good becomes the zero value. It is for what a stranger wrote and an honest
// agent only passes on.
func OrZero(rule Rule) Rule {
	return around(rule, func(c check, v reflect.Value) *Fault {
		if c(v) != nil {
			v.SetZero()
		}
		return nil
	})
}

// GoodOf is the rule of lists of which the elements that are not good are left out, at most so many in all.
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

// Each is the rule of values of one type of which a function says what is wrong, nothing where they are good.
func Each[T any](wrong func(*T) string) Rule {
	return Rule{build: func(_ *builder, t reflect.Type) check {
		must(t == reflect.TypeFor[T](), "%s is not %s", t, reflect.TypeFor[T]())
		return func(v reflect.Value) *Fault {
			if problem := wrong(v.Addr().Interface().(*T)); problem != "" {
				return &Fault{Problem: problem}
			}
			return nil
		}
	}}
}

// Together is the rule of structs whose fields are good each by itself and of which a function says what is wrong with
// them together.
func Together[T any](wrong func(*T) string) Rule {
	alone := Rule{build: func(b *builder, t reflect.Type) check { return b.structure(t) }}
	return Both(alone, Each(wrong))
}

// List is the rule of lists with at most so many elements, each under a rule or, where there is none, under that of its
// type.
func List(most int, element ...Rule) Rule {
	return Rule{build: func(b *builder, t reflect.Type) check {
		must(t.Kind() == reflect.Slice, "%s is not a list", t)
		of := b.build(t.Elem(), first(element))
		return func(v reflect.Value) *Fault {
			n := v.Len()
			if n > most {
				return &Fault{Problem: fmt.Sprintf("%d are more than %d", n, most)}
			}
			for i := range n {
				if fault := of(v.Index(i)); fault != nil {
					return fault.within("[" + strconv.Itoa(i) + "]")
				}
			}
			return nil
		}
	}}
}

// Table is the rule of maps with at most so many entries.
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
