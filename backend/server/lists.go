package server

import (
	"encoding"
	"encoding/json"
	"reflect"
)

// complete returns value with empty lists and maps in place of nil ones, at any depth, so that a client never gets null
// for a list. It copies what it changes.
func complete(value any) any {
	if value == nil {
		return nil
	}
	whole, _ := completed(reflect.ValueOf(value))
	return whole.Interface()
}

// completed returns v without nil lists and maps, and whether that differs from v.
func completed(v reflect.Value) (reflect.Value, bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return v, false
		}
		target, changed := completed(v.Elem())
		if !changed || v.Kind() == reflect.Interface {
			return target, changed
		}
		whole := reflect.New(v.Type().Elem())
		whole.Elem().Set(target)
		return whole, true
	case reflect.Struct:
		return completedStruct(v)
	case reflect.Slice:
		if v.IsNil() {
			return reflect.MakeSlice(v.Type(), 0, 0), true
		}
		return completedList(v)
	case reflect.Map:
		if v.IsNil() {
			return reflect.MakeMap(v.Type()), true
		}
		return completedMap(v)
	}
	return v, false
}

func completedStruct(v reflect.Value) (whole reflect.Value, changed bool) {
	switch v.Interface().(type) {
	case json.Marshaler, encoding.TextMarshaler:
		return v, false
	}
	whole = v
	for field, value := range v.Fields() {
		if !field.IsExported() {
			continue
		}
		value, differs := completed(value)
		if !differs {
			continue
		}
		if !changed {
			whole, changed = reflect.New(v.Type()).Elem(), true
			whole.Set(v)
		}
		whole.FieldByIndex(field.Index).Set(value)
	}
	return whole, changed
}

func completedList(v reflect.Value) (whole reflect.Value, changed bool) {
	whole = v
	for i := range v.Len() {
		item, differs := completed(v.Index(i))
		if !differs && (item.Kind() <= reflect.Complex128 || item.Kind() == reflect.String) {
			break // no item of these kinds differs
		}
		if differs && !changed {
			whole, changed = reflect.MakeSlice(v.Type(), v.Len(), v.Len()), true
			reflect.Copy(whole, v)
		}
		if differs {
			whole.Index(i).Set(item)
		}
	}
	return whole, changed
}

func completedMap(v reflect.Value) (reflect.Value, bool) {
	whole, changed := reflect.MakeMap(v.Type()), false
	for key, value := range v.Seq2() {
		item, differs := completed(value)
		if !differs {
			item = value
		}
		whole.SetMapIndex(key, item)
		changed = changed || differs
	}
	return whole, changed
}
