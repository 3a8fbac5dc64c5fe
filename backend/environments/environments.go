// Package environments reads the catalogue of environments: Slipway's own, and a user's changes in a file.
package environments

import (
	"bytes"
	"cmp"
	_ "embed" // Slipway's own catalogue
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/gpu"
)

//go:embed defaults.yaml
var defaults []byte

// FileName is the name of the file in the folder of the control plane.
const FileName = "environments.yaml"

// File is a user's catalogue. It is read on each use, so changes need no restart.
type File struct{ path string }

// In returns the file in a folder, which need not exist.
func In(dir string) File { return File{filepath.Join(dir, FileName)} }

// Path returns the path of the file.
func (f File) Path() string { return f.path }

type family struct {
	ID          string    `yaml:"id"`
	Title       string    `yaml:"title"`
	Icon        string    `yaml:"icon"`
	Summary     string    `yaml:"summary"`
	Hidden      bool      `yaml:"hidden"` // an environment of Slipway that is not offered
	Minimum     minimum   `yaml:"minimum"`
	Accelerator string    `yaml:"accelerator"` // none, optional or required
	Versions    []version `yaml:"versions"`

	line int
}

type minimum struct {
	CPU    int    `yaml:"cpu"`
	Memory amount `yaml:"memory"`
}

type version struct {
	Title string `yaml:"title"`
	Image string `yaml:"image"`
	Size  amount `yaml:"size"`
	// Jupyter is lab, notebook or empty: what the image has
	Jupyter string `yaml:"jupyter"`

	line int
}

// amount is a number of bytes, such as 512m or 4g.
type amount gpu.Bytes

func (a *amount) UnmarshalYAML(node *yaml.Node) error {
	n, err := gpu.ParseBytes(node.Value)
	if err != nil {
		return typeError(node, "%q is not an amount such as 512m or 4g")
	}
	*a = amount(n)
	return nil
}

// UnmarshalYAML stores the line for error messages.
func (f *family) UnmarshalYAML(node *yaml.Node) error {
	type plain family
	if err := known(node, "id", "title", "icon", "summary", "hidden", "minimum", "accelerator",
		"versions"); err != nil {
		return err
	}
	f.line = node.Line
	return node.Decode((*plain)(f))
}

// UnmarshalYAML stores the line for error messages.
func (v *version) UnmarshalYAML(node *yaml.Node) error {
	type plain version
	if err := known(node, "title", "image", "size", "jupyter"); err != nil {
		return err
	}
	v.line = node.Line
	return node.Decode((*plain)(v))
}

// typeError returns an error with the line and the value of a node.
func typeError(node *yaml.Node, format string) error {
	return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: "+format, node.Line, node.Value)}}
}

// known fails if node has other fields, such as misspelled ones.
func known(node *yaml.Node, fields ...string) error {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if key := node.Content[i]; !slices.Contains(fields, key.Value) {
			return typeError(key, "unknown field %q")
		}
	}
	return nil
}

// Environments returns the families to offer. If the file cannot be used, it returns Slipway's own and an error that
// names the line.
func (f File) Environments() ([]hub.Environment, error) {
	own, err := read(defaults)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return offered(own), nil
	}
	if err == nil {
		var changed []family
		if changed, err = read(data); err == nil {
			return offered(merge(own, changed)), nil
		}
	}
	what := err.Error()
	var typed *yaml.TypeError
	if errors.As(err, &typed) && len(typed.Errors) > 0 {
		what = typed.Errors[0]
	}
	return offered(own), session.WrapError(err, session.CodeSettingsBroken,
		fmt.Sprintf("%s cannot be used: %s.", f.path, what),
		"Mend it; until then Slipway offers its own environments.")
}

func read(data []byte) ([]family, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	var c struct {
		Environments []family `yaml:"environments"`
	}
	if err := decoder.Decode(&c); err != nil && !errors.Is(err, io.EOF) { // an empty file changes nothing
		return nil, err
	}
	seen := map[string]bool{}
	for _, one := range c.Environments {
		if err := one.check(seen); err != nil {
			return nil, err
		}
		seen[one.ID] = true
	}
	return c.Environments, nil
}

var idRule = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

func (f family) check(seen map[string]bool) error {
	at := func(line int, format string, args ...any) error {
		return fmt.Errorf("line %d: "+format, append([]any{line}, args...)...)
	}
	switch {
	case !idRule.MatchString(f.ID):
		return at(f.line, "the id %q has something else than small letters, digits and -", f.ID)
	case seen[f.ID]:
		return at(f.line, "duplicate id %q", f.ID)
	case f.Hidden:
		return nil
	case f.Title == "":
		return at(f.line, "%s has no title", f.ID)
	case len(f.Versions) == 0:
		return at(f.line, "%s has no versions", f.ID)
	case f.Minimum.CPU < 0 || f.Minimum.Memory < 0:
		return at(f.line, "the minimum of %s is below nothing", f.ID)
	case !slices.Contains([]string{"", "none", "optional", "required"}, f.Accelerator):
		return at(f.line, "the accelerator of %s is neither none, optional nor required", f.ID)
	}
	for _, v := range f.Versions {
		switch {
		case v.Title == "":
			return at(v.line, "a version of %s has no title", f.ID)
		case !session.ValidImage(v.Image):
			return at(v.line, "%q is not the name of an image", v.Image)
		case !slices.Contains([]string{"", hub.JupyterLab, hub.JupyterNotebook}, v.Jupyter):
			return at(v.line, "jupyter: %s of %s is neither lab nor notebook", v.Jupyter, f.ID)
		}
	}
	return nil
}

// merge replaces families by changed ones with the same id, and puts new ones first.
func merge(own, changed []family) []family {
	var fresh []family
	for _, one := range changed {
		if i := slices.IndexFunc(own, func(o family) bool { return o.ID == one.ID }); i >= 0 {
			own[i] = one
		} else {
			fresh = append(fresh, one)
		}
	}
	return append(fresh, own...)
}

func offered(families []family) []hub.Environment {
	var list []hub.Environment
	for _, f := range families {
		if f.Hidden {
			continue
		}
		e := hub.Environment{ID: f.ID, Title: f.Title, Icon: cmp.Or(f.Icon, "image"), Summary: f.Summary,
			Accelerator: f.Accelerator, MinCPU: f.Minimum.CPU, MinMemory: gpu.Bytes(f.Minimum.Memory)}
		for _, v := range f.Versions {
			e.Versions = append(e.Versions, hub.EnvironmentVersion{Title: v.Title, Image: v.Image,
				Size: gpu.Bytes(v.Size), Jupyter: v.Jupyter})
		}
		list = append(list, e)
	}
	return list
}
