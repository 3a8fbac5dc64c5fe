// Package settings is the one file in which a person's choices stand, and how the machine's agent shares and reclaims:
// settings.json in Slipway's folder, with a schema beside it that editors read. Each value is checked and each fault
// told with its line; SLIPWAY_* variables override what the file says. A file that is broken is left as it is, never
// written over.
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

// Problem is what is wrong with a value, and where.
type Problem struct {
	Line    int    // in the file; 0: it is about a variable
	Name    string // of the field or variable; "": the whole file
	Message string
	Broken  bool // nothing of the file can be read
}

// State is what is in force, and why.
type State struct {
	// by field: what overrides, else what the file says, else the default; absent: nothing is set
	Values    map[string]any
	File      map[string]any    // by field: what the file says and is valid
	Overrides map[string]string // by field: the variable's text
	Problems  []Problem
}

// File is safe for concurrent use. Other programs may write to it too.
type File struct {
	path   string
	env    func(string) string
	fields []Field
	saving sync.Mutex // orders reading, changing and writing
}

// New tells of the file in a folder. env is os.Getenv if nil.
func New(dir string, env func(string) string) *File {
	if env == nil {
		env = os.Getenv
	}
	return &File{path: filepath.Join(dir, "settings.json"), env: env, fields: Fields()}
}

// Path is where the file is, whether there is one or not.
func (f *File) Path() string { return f.path }

// Exists tells whether there is a file.
func (f *File) Exists() bool {
	_, err := os.Stat(f.path)
	return err == nil
}

// Read returns what is in force now. It fails with settings_read_invalid when the file cannot be opened; what stands in
// it is told as Problems.
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
			value, wrong := field.check(raw)
			if wrong != "" {
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

// Save changes fields; a nil value removes one, so that its default is in force again. What it does not change stays,
// also what is not understood. It fails with settings_update_invalid and Fields, settings_update_conflict where the
// file is broken, or settings_update_failed.
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
	return refusal(wrong...)
}

func refusal(wrong ...session.FieldError) error {
	if len(wrong) == 0 {
		return nil
	}
	return &session.Error{Code: session.CodeSettingsInvalid, Message: wrong[0].Field + ": " + wrong[0].Message,
		Hint: wrong[0].Hint, Fields: wrong}
}

// fault is what is wrong with a value of a field, which may not exist.
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

// Parse reads the value of a field as it is written in a variable. It fails with settings_update_invalid and Fields.
func Parse(name, text string) (any, error) {
	f := File{fields: Fields()}
	field, ok := f.field(name)
	value, wrong := field.parse(text)
	if !ok || wrong != "" {
		return nil, refusal(field.fault(name, wrong))
	}
	return value, nil
}

// write replaces the file and the schema beside it.
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
		path = target // people keep settings elsewhere and link to them
	}
	return atomicwriter.WriteFile(path, append(content, '\n'), 0o600)
}

// Env is the environment with what the file says in place of variables that are not set, for whoever reads variables
// alone. It fails with settings_read_invalid where a value that is read at the start is not valid: nothing is shared or
// reclaimed otherwise than was meant.
func (f *File) Env() (func(string) string, error) {
	s, err := f.Read()
	if err != nil {
		return nil, err
	}
	for _, problem := range s.Problems {
		field, known := f.field(problem.Name)
		if problem.Line > 0 && (problem.Broken || !known || field.Restart) {
			return nil, session.NewError(session.CodeSettingsBroken,
				fmt.Sprintf("The settings file is wrong at line %d: %s", problem.Line,
					strings.TrimPrefix(problem.Name+": ", ": ")+problem.Message), "Mend "+f.path+
					" and start Slipway again.")
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

// Broken tells whether nothing of the file could be read.
func (s State) Broken() bool {
	return slices.ContainsFunc(s.Problems, func(p Problem) bool { return p.Broken })
}
