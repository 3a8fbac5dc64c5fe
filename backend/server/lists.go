package server

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// lists completes answers of a few types. The zero value is ready, and safe for concurrent use.
type lists struct {
	known sync.Map // of filling by reflect.Type
}

// complete returns value with empty lists and maps in place of nil ones, at any depth, so that a client never gets null
// where it expects a list. It changes nothing that value refers to.
func (l *lists) complete(value any) any {
	if value == nil {
		return nil
	}
	fill := l.fillingOf(reflect.TypeOf(value))
	if fill == nil {
		return value
	}
	whole := reflect.New(reflect.TypeOf(value)).Elem()
	whole.Set(reflect.ValueOf(value))
	fill(whole)
	return whole.Interface()
}

// filling replaces the nil lists and maps in a value, which it may set, and copies what the value refers to before it
// changes that.
type filling func(v reflect.Value)

// fillingOf returns nil for a type without lists and maps.
func (l *lists) fillingOf(t reflect.Type) filling {
	if known, ok := l.known.Load(t); ok {
		return known.(filling) //nolint:forcetypeassert // it holds nothing else
	}
	fill := newFillings{l, map[reflect.Type]*filling{}}.of(t)
	l.known.Store(t, fill)
	return fill
}

// newFillings are those of the types that one type consists of. A type may contain itself.
type newFillings struct {
	lists *lists
	types map[reflect.Type]*filling
}

func (n newFillings) of(t reflect.Type) filling {
	if under := n.types[t]; under != nil {
		return func(v reflect.Value) {
			if *under != nil {
				(*under)(v)
			}
		}
	}
	if t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return nil
	}
	under := new(filling)
	n.types[t] = under
	switch t.Kind() {
	case reflect.Interface:
		*under = func(v reflect.Value) {
			if !v.IsNil() {
				v.Set(reflect.ValueOf(n.lists.complete(v.Interface())))
			}
		}
	case reflect.Pointer:
		*under = n.pointer(t)
	case reflect.Struct:
		*under = n.structure(t)
	case reflect.Slice:
		*under = n.list(t)
	case reflect.Map:
		*under = n.table(t)
	}
	return *under
}

func (n newFillings) pointer(t reflect.Type) filling {
	fill := n.of(t.Elem())
	if fill == nil {
		return nil
	}
	return func(v reflect.Value) {
		if !v.IsNil() {
			target := reflect.New(t.Elem())
			target.Elem().Set(v.Elem())
			fill(target.Elem())
			v.Set(target)
		}
	}
}

func (n newFillings) structure(t reflect.Type) filling {
	type part struct {
		index int
		fill  filling
		omit  bool // if nil
	}
	var parts []part
	for field := range t.Fields() {
		if !field.IsExported() {
			continue
		}
		if fill := n.of(field.Type); fill != nil {
			parts = append(parts, part{field.Index[0], fill, strings.Contains(field.Tag.Get("json"), ",omitempty") &&
				(field.Type.Kind() == reflect.Slice || field.Type.Kind() == reflect.Map)})
		}
	}
	if parts == nil {
		return nil
	}
	return func(v reflect.Value) {
		for _, p := range parts {
			if field := v.Field(p.index); !p.omit || !field.IsNil() {
				p.fill(field)
			}
		}
	}
}

func (n newFillings) list(t reflect.Type) filling {
	fill := n.of(t.Elem())
	return func(v reflect.Value) {
		switch {
		case v.IsNil():
			v.Set(reflect.MakeSlice(t, 0, 0))
		case fill != nil:
			whole := reflect.MakeSlice(t, v.Len(), v.Len())
			reflect.Copy(whole, v)
			for i := range whole.Len() {
				fill(whole.Index(i))
			}
			v.Set(whole)
		}
	}
}

func (n newFillings) table(t reflect.Type) filling {
	fill := n.of(t.Elem())
	return func(v reflect.Value) {
		switch {
		case v.IsNil():
			v.Set(reflect.MakeMap(t))
		case fill != nil:
			whole := reflect.MakeMapWithSize(t, v.Len())
			for key, value := range v.Seq2() {
				item := reflect.New(t.Elem()).Elem()
				item.Set(value)
				fill(item)
				whole.SetMapIndex(key, item)
			}
			v.Set(whole)
		}
	}
}
