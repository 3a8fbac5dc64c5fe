package server

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/backend/api/route"
	"slipway/backend/session"
)

const maxBody = 4 << 20 // bytes

// decode decodes the body of r strictly into the value that into points to: one JSON value, no unknown field, every
// value of its field's type. It reports all errors at once, each by its path. An empty body is an empty object.
func decode(r *http.Request, into any) error {
	found, err := decodeBody(r, into)
	return cmp.Or(err, failureOf(slices.Concat(found.wrong, found.units)))
}

// decodeDraft is like decode but returns invalid amounts and durations by field, so that the rest can still be
// validated.
func decodeDraft(r *http.Request, into any) ([]session.FieldError, error) {
	found, err := decodeBody(r, into)
	return found.units, cmp.Or(err, failureOf(found.wrong))
}

// decodeWhatFits is like decode but returns everything invalid by field.
func decodeWhatFits(r *http.Request, into any) ([]session.FieldError, error) {
	found, err := decodeBody(r, into)
	return slices.Concat(found.wrong, found.units), err
}

func decodeBody(r *http.Request, into any) (judge, error) {
	data, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return judge{}, session.NewError(session.CodeTooLarge, fmt.Sprintf("The request is longer than %d MiB.",
			maxBody>>20), "Send less.")
	case err != nil:
		return judge{}, malformed("The request is incomplete.", err)
	}
	return decodeBytes(data, into)
}

func decodeBytes(data []byte, into any) (j judge, err error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return j, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return j, malformed("The request is not JSON.", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return j, malformed("Unexpected data after the JSON of the request.", err)
	}
	j.value("", tree, reflect.TypeOf(into).Elem())
	if len(j.wrong) > 0 && j.wrong[0].Field == "" {
		return j, failureOf(j.wrong)
	}
	if j.found() > 0 {
		if data, err = json.Marshal(tree); err != nil {
			return j, err
		}
	}
	if err := json.Unmarshal(data, into); err != nil {
		return j, malformed("The request does not match this endpoint.", err)
	}
	return j, nil
}

func malformed(message string, err error) error {
	return &session.Error{Code: session.CodeRequestInvalid, Message: message,
		Hint: "GET " + route.OpenAPI.Target() + " describes every request.", Err: err}
}

// judge compares a JSON value with a Go type and removes what does not match. encoding/json would stop at the first
// error and not say where it is.
type judge struct {
	wrong []session.FieldError // unknown fields and those of a wrong type
	units []session.FieldError // invalid amounts and durations
}

func (j *judge) found() int { return len(j.wrong) + len(j.units) }

// failureOf returns the error of a request with invalid fields, or nil if there are none.
func failureOf(wrong []session.FieldError) error {
	if len(wrong) == 0 {
		return nil
	}
	message := wrong[0].Message
	if len(wrong) > 1 {
		message = fmt.Sprintf("%s (%d faults)", message, len(wrong))
	}
	return &session.Error{Code: session.CodeRequestInvalid, Message: message, Hint: wrong[0].Hint, Fields: wrong}
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[session.Duration]()
	unitType     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (j *judge) value(path string, value any, t reflect.Type) {
	switch {
	case t.Kind() == reflect.Pointer:
		if value != nil {
			j.value(path, value, t.Elem())
		}
	case t == timeType:
		text, _ := value.(string)
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			j.expect(path, value, "a time such as \"2031-05-01T12:00:00Z\"")
		}
	case reflect.PointerTo(t).Implements(unitType):
		j.unit(path, value, t)
	case t.Kind() == reflect.Struct:
		j.object(path, value, t)
	case t.Kind() == reflect.Slice:
		j.list(path, value, t)
	default:
		j.scalar(path, value, t)
	}
}

// unit checks an amount or a duration.
func (j *judge) unit(path string, value any, t reflect.Type) {
	text, isText := value.(string)
	if number, isNumber := value.(json.Number); isNumber {
		text = number.String()
	}
	switch _, err := strconv.ParseInt(text, 10, 64); {
	case isText:
	case t == durationType:
		j.expect(path, value, "a text")
		return
	case t.Kind() == reflect.Struct:
		j.object(path, value, t)
		return
	case err != nil:
		j.expect(path, value, "a whole number of bytes or a text such as \"512m\"")
		return
	}
	into := reflect.New(t).Interface().(encoding.TextUnmarshaler) //nolint:forcetypeassert // its type was checked
	if fault := session.ReadUnit(strings.TrimPrefix(path, "spec."), text, into); fault != nil {
		j.units = append(j.units, *fault)
	}
}

func (j *judge) object(path string, value any, t reflect.Type) {
	object, ok := value.(map[string]any)
	if !ok {
		j.expect(path, value, "an object")
		return
	}
	fields := fieldsOf(t)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		at := name
		if path != "" {
			at = path + "." + name
		}
		if fieldType, ok := fields[name]; ok {
			known := j.found()
			j.value(at, object[name], fieldType)
			_, nested := object[name].(map[string]any)
			if j.found() > known && !(nested && isStruct(fieldType)) {
				delete(object, name)
			}
			continue
		}
		delete(object, name)
		j.wrong = append(j.wrong, wrongField(at, fmt.Sprintf("Unknown field %q.", at),
			"Known fields: "+strings.Join(slices.Sorted(maps.Keys(fields)), ", ")+"."))
	}
}

func (j *judge) list(path string, value any, t reflect.Type) {
	if value == nil {
		return
	}
	list, ok := value.([]any)
	if !ok {
		j.expect(path, value, "a list")
		return
	}
	for i, item := range list {
		j.value(path+"["+strconv.Itoa(i)+"]", item, t.Elem())
	}
}

func (j *judge) scalar(path string, value any, t reflect.Type) {
	number, _ := value.(json.Number) // "", which is not a number, if it is something else
	var ok bool
	var what string
	switch t.Kind() {
	case reflect.String:
		_, ok = value.(string)
		what = "a text"
	case reflect.Bool:
		_, ok = value.(bool)
		what = "true or false"
	case reflect.Float64:
		_, err := number.Float64() // fails if it is too large
		ok, what = err == nil, "a number"
	default:
		_, err := strconv.ParseInt(number.String(), 10, t.Bits())
		ok, what = err == nil, "a whole number"
	}
	if !ok {
		j.expect(path, value, what)
	}
}

func isStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
}

func (j *judge) expect(path string, value any, what string) {
	subject := cmp.Or(path, "The request")
	j.wrong = append(j.wrong, wrongField(path, fmt.Sprintf("%s is %s, not %s.", subject, describe(value), what),
		"Send "+what+"."))
}

func describe(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return "the text " + strconv.Quote(clip(v))
	case json.Number:
		return "the number " + clip(v.String())
	case bool:
		return strconv.FormatBool(v)
	case []any:
		return "a list"
	}
	return "an object"
}

func clip(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// fieldsOf returns the JSON names of a struct's fields with their types.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := make(map[string]reflect.Type, t.NumField())
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.Anonymous && field.IsExported() && name != "" && name != "-" {
			fields[name] = field.Type
		}
	}
	return fields
}
