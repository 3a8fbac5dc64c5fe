// Package settings reads and writes settings.json in Slipway's folder: the person's choices and how the machine's agent
// shares devices and reclaims sessions. A schema for editors is next to it. Every value is checked, problems are
// reported with their lines, and SLIPWAY_* variables override the file. A file with a syntax error is never
// overwritten.
package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/moby/sys/atomicwriter"

	"slipway/backend/session"
)

// Problem is an error in a value or in the whole file.
type Problem struct {
	Line    int    // in the file; 0: in a variable
	Name    string // of the field or variable; "": the whole file
	Message string
	Broken  bool // the file cannot be read at all
}

// State has the current settings by field and where they come from.
type State struct {
	Values    map[string]any    // of the variable, else of the file, else the default
	File      map[string]any    // valid values of the file
	Overrides map[string]string // texts of the variables
	Problems  []Problem
}

// File is safe for concurrent use. Other programs may write to it too.
type File struct {
	path   string
	env    func(string) string
	fields []Field
	saving sync.Mutex // orders reading, changing and writing
}

// New returns the file of a folder. env is os.Getenv if nil.
func New(dir string, env func(string) string) *File {
	if env == nil {
		env = os.Getenv
	}
	return &File{path: filepath.Join(dir, "settings.json"), env: env, fields: Fields()}
}

// Path returns the path of the file, which may not exist.
func (f *File) Path() string { return f.path }

// Exists reports whether the file exists.
func (f *File) Exists() bool {
	_, err := os.Stat(f.path)
	return err == nil
}

// Read returns the current settings. It fails with settings_read_invalid if the file cannot be opened; errors in it are
// Problems.
func (f *File) Read() (State, error) {
	d, broken, err := f.load()
	if err != nil {
		return State{}, err
	}
	return f.state(d, broken), nil
}

func (f *File) load() (document, *Problem, error) {
	data, err := os.ReadFile(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return document{}, nil, &session.Error{Code: session.CodeSettingsBroken,
			Message: "The settings file cannot be read.", Hint: "Check the permissions of " + f.path + ".", Err: err}
	}
	d, broken := readDocument(data)
	return d, broken, nil
}

func (f *File) state(d document, broken *Problem) State {
	s := State{Values: map[string]any{}, File: map[string]any{}, Overrides: map[string]string{}}
	if broken != nil {
		s.Problems = append(s.Problems, *broken)
		d = document{}
	}
	known := map[string]bool{schemaName: true}
	for _, field := range f.fields {
		known[field.Name] = true
		if field.Default != nil {
			s.Values[field.Name] = field.Default
		}
		if raw, ok := d.values[field.Name]; ok {
			if value, wrong := field.check(raw); wrong != "" {
				s.Problems = append(s.Problems, Problem{Line: d.lines[field.Name], Name: field.Name, Message: wrong})
			} else {
				s.File[field.Name], s.Values[field.Name] = value, value
			}
		}
		if text := f.env(field.Env); text != "" {
			s.Overrides[field.Name] = text
			if value, wrong := field.parse(text); wrong != "" {
				s.Problems = append(s.Problems, Problem{Name: field.Env, Message: wrong})
			} else {
				s.Values[field.Name] = value
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.values)) {
		if !known[name] {
			s.Problems = append(s.Problems,
				Problem{Line: d.lines[name], Name: name, Message: "There is no such setting."})
		}
	}
	return s
}

// Save changes fields; nil resets one. Everything else in the file is kept, even what is unknown. It fails with
// settings_update_invalid and Fields, settings_update_conflict if the file has a syntax error, or
// settings_update_failed.
func (f *File) Save(changes map[string]any) (State, error) {
	f.saving.Lock()
	defer f.saving.Unlock()
	d, broken, err := f.load()
	if err != nil {
		return State{}, err
	}
	if broken != nil {
		return State{}, session.NewError(session.CodeSettingsConflict,
			fmt.Sprintf("The settings file has a syntax error at line %d.", broken.Line), "Mend "+f.path+
				" first, or remove it.")
	}
	if err := f.apply(d.values, changes); err != nil {
		return State{}, err
	}
	d.values[schemaName] = "./" + schemaFile
	if err := f.write(d.values); err != nil {
		return State{}, &session.Error{Code: session.CodeSettingsFailed, Message: "The settings could not be written.",
			Hint: "Check the permissions and the free space of " + filepath.Dir(f.path) + ".", Err: err}
	}
	return f.state(d, nil), nil
}

func (f *File) apply(values, changes map[string]any) error {
	var wrong []session.FieldError
	for name, value := range changes {
		field, ok := f.field(name)
		if value == nil && ok {
			delete(values, name)
			continue
		}
		value, message := field.check(value)
		if !ok || message != "" {
			wrong = append(wrong, field.fault(name, message))
			continue
		}
		values[name] = value
	}
	if len(wrong) > 0 {
		return refusal(wrong...)
	}
	return nil
}

func refusal(wrong ...session.FieldError) error {
	return &session.Error{Code: session.CodeSettingsInvalid, Message: wrong[0].Field + ": " + wrong[0].Message,
		Hint: wrong[0].Hint, Fields: wrong}
}

// fault describes an invalid value of a field, which may not exist.
func (f Field) fault(name, message string) session.FieldError {
	if f.Name == "" {
		message = "There is no such setting."
	}
	return session.FieldError{Field: name, Kind: session.KindInvalid, Message: message, Hint: f.hint()}
}

func (f *File) field(name string) (Field, bool) {
	i := slices.IndexFunc(f.fields, func(field Field) bool { return field.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return f.fields[i], true
}

func (f Field) hint() string {
	switch {
	case f.Name == "":
		return "slipway settings lists them."
	case f.Print(f.Default) != "":
		return "Usually it is " + f.Print(f.Default) + "."
	}
	return "Write it like " + f.Example + "."
}

// Parse parses the value of a field as it is written in a variable. It fails with settings_update_invalid and Fields.
func Parse(name, text string) (any, error) {
	f := File{fields: Fields()}
	field, ok := f.field(name)
	value, wrong := field.parse(text)
	if !ok || wrong != "" {
		return nil, refusal(field.fault(name, wrong))
	}
	return value, nil
}

// write replaces the file and its schema.
func (f *File) write(values map[string]any) error {
	tree := map[string]any{}
	for name, value := range values {
		group, rest, nested := strings.Cut(name, ".")
		if !nested {
			tree[name] = value
			continue
		}
		inner, _ := tree[group].(map[string]any)
		if inner == nil {
			inner = map[string]any{}
			tree[group] = inner
		}
		inner[rest] = value
	}
	content, err := json.MarshalIndent(tree, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	if err := atomicwriter.WriteFile(filepath.Join(filepath.Dir(f.path), schemaFile), Schema(), 0o600); err != nil {
		return err
	}
	path := f.path
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // the file may be a link to settings elsewhere
	}
	return atomicwriter.WriteFile(path, append(content, '\n'), 0o600)
}

// Env returns the environment, with values of the file for variables that are not set. It fails with
// settings_read_invalid if a value that is read at the start is invalid, so that the agent never ignores one.
func (f *File) Env() (func(string) string, error) {
	s, err := f.Read()
	if err != nil {
		return nil, err
	}
	for _, problem := range s.Problems {
		field, known := f.field(problem.Name)
		if problem.Line > 0 && (problem.Broken || !known || field.Restart()) {
			return nil, session.NewError(session.CodeSettingsBroken,
				fmt.Sprintf("The settings file has an error at line %d: %s", problem.Line,
					strings.TrimPrefix(problem.Name+": ", ": ")+problem.Message), "Mend "+f.path+
					" and restart Slipway.")
		}
	}
	texts := map[string]string{}
	for _, field := range f.fields {
		if value, ok := s.File[field.Name]; ok {
			texts[field.Env] = field.Print(value)
		}
	}
	env := f.env
	return func(name string) string {
		if text := env(name); text != "" {
			return text
		}
		return texts[name]
	}, nil
}

// Broken reports whether the file could not be read at all.
func (s State) Broken() bool {
	return slices.ContainsFunc(s.Problems, func(p Problem) bool { return p.Broken })
}
