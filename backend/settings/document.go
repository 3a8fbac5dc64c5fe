package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// document is the content of a file: each value by its path, and its line.
type document struct {
	values map[string]any
	lines  map[string]int
}

// schemaName is the one name in a file that is not a setting: editors find the schema by it.
const schemaName = "$schema"

// readDocument reads JSON strictly: an object of values and of objects of values, without duplicate names.
func readDocument(data []byte) (document, *Problem) {
	d := document{values: map[string]any{}, lines: map[string]int{}}
	if len(bytes.TrimSpace(data)) == 0 {
		return d, nil
	}
	r := &reader{decoder: json.NewDecoder(bytes.NewReader(data)), data: data, into: d}
	if err := r.object(""); err != nil {
		return d, r.problem(err)
	}
	switch _, err := r.decoder.Token(); {
	case err == nil:
		return d, r.problem(errors.New("something follows the end"))
	case !errors.Is(err, io.EOF):
		return d, r.problem(err)
	}
	return d, nil
}

type reader struct {
	decoder *json.Decoder
	data    []byte
	into    document
}

func (r *reader) line(offset int64) int {
	return 1 + bytes.Count(r.data[:min(int(offset), len(r.data))], []byte("\n"))
}

func (r *reader) problem(err error) *Problem {
	offset := r.decoder.InputOffset()
	message := err.Error()
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		offset = max(offset, syntax.Offset)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		offset, message = int64(len(r.data)), "it ends too early"
	}
	return &Problem{Line: r.line(offset), Message: "This is not JSON: " + message + ".", Broken: true}
}

// object reads an object whose names begin with prefix.
func (r *reader) object(prefix string) error {
	if token, err := r.decoder.Token(); err != nil {
		return err
	} else if token != json.Delim('{') {
		return errors.New("an object { … } is expected")
	}
	for r.decoder.More() {
		token, err := r.decoder.Token()
		if err != nil {
			return err
		}
		name := prefix + token.(string) //nolint:forcetypeassert // the names of objects are strings
		if _, twice := r.into.lines[name]; twice {
			return fmt.Errorf("%s occurs twice", name)
		}
		r.into.lines[name] = r.line(r.decoder.InputOffset())
		if err := r.value(name); err != nil {
			return err
		}
	}
	_, err := r.decoder.Token()
	return err
}

func (r *reader) value(name string) error {
	rest := r.data[r.decoder.InputOffset():]
	if begin := bytes.TrimLeft(rest, " \t\r\n:"); !strings.Contains(name, ".") && len(begin) > 0 && begin[0] == '{' {
		return r.object(name + ".")
	}
	var value any
	if err := r.decoder.Decode(&value); err != nil {
		return err
	}
	r.into.values[name] = value
	return nil
}
