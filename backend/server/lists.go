package server

import (
	"encoding"
	"encoding/json"
	"reflect"
)

// complete is value as the API writes it: lists and maps that are nil are empty,
// wherever they are, so that a client never meets null for one. The value itself
// stays as it is, since the hub goes on using what is in it.
func complete(value any) any {
	if value == nil {
		return nil
	}
	whole, _ := completed(reflect.ValueOf(value))
	return whole.Interface()
}

// completed is v without nil lists and maps, and whether it differs from v.
func completed(v reflect.Value) (reflect.Value, bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return completedTarget(v)
	case reflect.Struct:
		return completedStruct(v)
	case reflect.Slice:
		return completedList(v)
	case reflect.Map:
		if v.IsNil() {
			return reflect.MakeMap(v.Type()), true
		}
		return completedMap(v)
	}
	return v, false
}

func completedTarget(v reflect.Value) (reflect.Value, bool) {
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
}

func completedStruct(v reflect.Value) (reflect.Value, bool) {
	switch v.Interface().(type) {
	case json.Marshaler, encoding.TextMarshaler: // which write themselves
		return v, false
	}
	var whole reflect.Value
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		field, changed := completed(v.Field(i))
		if !changed {
			continue
		}
		if !whole.IsValid() {
			whole = reflect.New(v.Type()).Elem()
			whole.Set(v)
		}
		whole.Field(i).Set(field)
	}
	if !whole.IsValid() {
		return v, false
	}
	return whole, true
}

func completedList(v reflect.Value) (reflect.Value, bool) {
	if v.IsNil() {
		return reflect.MakeSlice(v.Type(), 0, 0), true
	}
	var whole reflect.Value
	for i := range v.Len() {
		item, changed := completed(v.Index(i))
		if !changed {
			if item.Kind() <= reflect.Complex128 || item.Kind() == reflect.String {
				break // and so are all the others
			}
			continue
		}
		if !whole.IsValid() {
			whole = reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(whole, v)
		}
		whole.Index(i).Set(item)
	}
	if !whole.IsValid() {
		return v, false
	}
	return whole, true
}

func completedMap(v reflect.Value) (reflect.Value, bool) {
	var whole reflect.Value
	for each := v.MapRange(); each.Next(); {
		item, changed := completed(each.Value())
		if !changed {
			continue
		}
		if !whole.IsValid() {
			whole = reflect.MakeMap(v.Type())
			for copied := v.MapRange(); copied.Next(); {
				whole.SetMapIndex(copied.Key(), copied.Value())
			}
		}
		whole.SetMapIndex(each.Key(), item)
	}
	if !whole.IsValid() {
		return v, false
	}
	return whole, true
}
