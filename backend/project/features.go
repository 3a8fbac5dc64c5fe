package project

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"slipway/backend/session"
)

// feature adds a program or a setting to the image of a devcontainer.json. It is a directory of the project with a
// description and a script, see https://containers.dev/implementors/features. Those of a registry are not taken over.
type feature struct {
	name    string // as it is asked for, such as ./tool
	dir     string // in the project
	values  any    // of its options, as asked for
	keys    map[string]any
	about   description
	waitsOn []string // directories of features that are installed before, if they are asked for
}

// description is what is taken over of a devcontainer-feature.json.
type description struct {
	Options map[string]struct {
		Default any `json:"default"`
	} `json:"options"`
	ContainerEnv  map[string]string `json:"containerEnv"`
	DependsOn     map[string]any    `json:"dependsOn"`
	InstallsAfter []string          `json:"installsAfter"`
}

// described are the keys of a description that are taken over, or that say nothing about an image.
var described = []string{"id", "version", "name", "description", "documentationURL", "licenseURL", "keywords",
	"options", "containerEnv", "dependsOn", "installsAfter", "customizations", "legacyIds", "deprecated"}

const mostFeatures = 50

// readFeatures reads the features that are asked for and those that they need, and returns them in the order of their
// installation.
func (p *Plan) readFeatures(asked map[string]any, first []string) ([]*feature, error) {
	var found []*feature
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if err := p.addFeature(&found, name, asked[name]); err != nil {
			return nil, err
		}
	}
	rank := func(f *feature) int {
		if at := slices.Index(first, f.name); at >= 0 {
			return at
		}
		return len(first)
	}
	slices.SortStableFunc(found, func(a, b *feature) int { return rank(a) - rank(b) })
	var ordered []*feature
	for len(found) > 0 {
		at := slices.IndexFunc(found, func(f *feature) bool {
			return !slices.ContainsFunc(found, func(other *feature) bool {
				return other != f && slices.Contains(f.waitsOn, other.dir)
			})
		})
		if at < 0 {
			return nil, invalid(p.File, "The features of "+p.File+" wait for each other.",
				"Remove one of dependsOn and installsAfter.")
		}
		ordered, found = append(ordered, found[at]), slices.Delete(found, at, at+1)
	}
	return ordered, nil
}

// addFeature adds a feature after those that it depends on, unless it is there.
func (p *Plan) addFeature(found *[]*feature, name string, values any) error {
	if !strings.HasPrefix(name, "./") && !strings.HasPrefix(name, "../") {
		p.leave("features "+name, "projectFeatures")
		return nil
	}
	f := &feature{name: name, dir: path.Join(path.Dir(p.File), name), values: values}
	if !fs.ValidPath(f.dir) || !plainPath.MatchString(f.dir) {
		return invalid(p.File, fmt.Sprintf("The feature %q is no directory of the project.", session.Clip(name)),
			"Use one beside "+p.File+", named with letters, digits, dots, hyphens and underscores.")
	}
	if slices.ContainsFunc(*found, func(other *feature) bool { return other.dir == f.dir }) {
		return nil
	}
	if len(*found) == mostFeatures {
		return invalid(p.File, fmt.Sprintf("%s asks for more than %d features.", p.File, mostFeatures),
			"Install what you need in a Dockerfile.")
	}
	file := path.Join(f.dir, "devcontainer-feature.json")
	if err := p.readJSON(file, &f.keys, &f.about); err != nil {
		return err
	}
	if _, err := fs.Stat(p.tree, path.Join(f.dir, "install.sh")); err != nil {
		return p.unread(path.Join(f.dir, "install.sh"), err)
	}
	p.leaveOthers(name+" ", f.keys, described)
	*found = append(*found, f)
	for _, other := range append(slices.Sorted(maps.Keys(f.about.DependsOn)), f.about.InstallsAfter...) {
		f.waitsOn = append(f.waitsOn, path.Join(path.Dir(p.File), other))
	}
	for _, other := range slices.Sorted(maps.Keys(f.about.DependsOn)) {
		if err := p.addFeature(found, other, f.about.DependsOn[other]); err != nil {
			return err
		}
	}
	return nil
}

// readJSON reads a file with comments and trailing commas.
func (p *Plan) readJSON(file string, into ...any) error {
	text, err := p.read(file)
	if err != nil {
		return err
	}
	plain, err := hujson.Standardize([]byte(text))
	for _, value := range into {
		if err == nil {
			err = json.Unmarshal(plain, value)
		}
	}
	if err != nil {
		why := session.Clip(strings.TrimPrefix(err.Error(), "hujson: "))
		return invalid(file, file+" cannot be understood: "+why+".", "Correct it.")
	}
	return nil
}

// install adds the features to the image that is named or built so far, with the context that has been chosen.
func (p *Plan) install(features []*feature, project fs.FS, context string) error {
	if len(features) == 0 {
		return nil
	}
	lines := []string{strings.TrimRight(p.Dockerfile, "\n")}
	if p.Dockerfile == "" {
		if !session.ValidImage(p.Image) {
			return invalid("environment", "The image that is extended is missing.", "Choose an environment.")
		}
		p.Generated, p.Bases = true, []string{p.Image}
		lines = []string{"FROM " + p.Image}
	}
	if p.Target != "" {
		lines = append(lines, "FROM "+p.Target)
		p.Target = ""
	}
	lines = append(lines, "USER root")
	for _, f := range features {
		dir, inside := f.dir, true
		if context != "." {
			dir, inside = strings.CutPrefix(f.dir, context+"/")
		}
		if !inside {
			return invalid(p.File, fmt.Sprintf("The feature %s is not in the context of the build, %s.",
				session.Clip(f.name), context), `Build with the context "..".`)
		}
		tree, err := fs.Sub(project, f.dir)
		if err != nil {
			return p.unread(f.dir, err)
		}
		files, err := contextFiles(tree, Dockerfile)
		if err != nil {
			return err
		}
		for _, file := range files {
			p.files = append(p.files, path.Join(dir, file))
		}
		lines = append(lines, p.steps(f, dir)...)
	}
	slices.Sort(p.files)
	p.files, p.Dockerfile = slices.Compact(p.files), strings.Join(lines, "\n")+"\n"
	return nil
}

// steps are the lines of a Dockerfile that install a feature from dir in the context.
func (p *Plan) steps(f *feature, dir string) (lines []string) {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	for _, name := range slices.Sorted(maps.Keys(f.about.ContainerEnv)) {
		value, ok := p.line(f.name+" containerEnv."+name, f.about.ContainerEnv[name])
		if ok && envName.MatchString(name) {
			lines = append(lines, "ENV "+name+`="`+quote.Replace(value)+`"`)
		}
	}
	return append(lines, "RUN --mount=type=bind,rw,source="+dir+",target=/tmp/slipway-feature "+
		"cd /tmp/slipway-feature && chmod +x install.sh && "+p.options(f)+"_REMOTE_USER=root "+
		"_REMOTE_USER_HOME=/root _CONTAINER_USER=root _CONTAINER_USER_HOME=/root ./install.sh")
}

var (
	plainPath  = regexp.MustCompile(`^[A-Za-z0-9._/-]*[A-Za-z0-9_/-]$`)
	notInName  = regexp.MustCompile(`[^A-Za-z0-9_]`)
	nameBegins = regexp.MustCompile(`^[0-9_]+`)
)

// options returns the variables in which a feature's script finds its options, by the names of the specification.
func (p *Plan) options(f *feature) string {
	values := map[string]any{}
	for name, one := range f.about.Options {
		values[name] = one.Default
	}
	switch asked := f.values.(type) {
	case map[string]any:
		maps.Copy(values, asked)
	case string:
		if _, has := values["version"]; has {
			values["version"] = asked
		}
	}
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] == nil {
			continue
		}
		value, ok := p.line(f.name+" "+name, fmt.Sprint(values[name]))
		if !ok {
			continue
		}
		name = nameBegins.ReplaceAllString(notInName.ReplaceAllString(name, "_"), "_")
		all.WriteString(strings.ToUpper(name) + "=" + session.ShellWord(value) + " ")
	}
	return all.String()
}

// line reports whether a value can stand in one line of a Dockerfile.
func (p *Plan) line(what, value string) (string, bool) {
	if strings.ContainsAny(value, "\r\n\x00") {
		p.leave(what, "projectLine")
		return "", false
	}
	return value, true
}
