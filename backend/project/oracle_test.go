//go:build !windows

package project

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"slipway/backend/session"
	"slipway/gpu"
)

// reading is what the specification's own program says of a devcontainer.json, with the values of variables.
type reading struct {
	Configuration devContainer `json:"configuration"`
	Features      struct {
		Sets []struct { // in the order of their installation
			Source struct {
				Name string `json:"userFeatureId"`
			} `json:"sourceInformation"`
			Features []installed `json:"features"`
		} `json:"featureSets"`
	} `json:"featuresConfiguration"`
	Workspace struct {
		Folder string `json:"workspaceFolder"`
		Mount  string `json:"workspaceMount"`
	} `json:"workspace"`
	Merged map[string]json.RawMessage `json:"mergedConfiguration"`
}

type installed struct {
	description
	Value any `json:"value"`
}

// engine answers the program in place of docker: there is no container, and images say nothing about themselves.
const engine = `#!/bin/sh
case "$*" in *inspect*) echo '[{"Id": "sha256:1", "Architecture": "amd64", "Os": "linux", "Config": {}}]' ;; esac
`

// ask runs the program on a project.
func ask(t *testing.T, project []txtar.File) (said reading) {
	t.Helper()
	dir := t.TempDir()
	root, docker := filepath.Join(dir, "vision"), filepath.Join(dir, "docker")
	err := os.WriteFile(docker, []byte(engine), 0o700)
	for _, f := range project {
		file := filepath.Join(root, f.Name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, f.Data, 0o644))
	}
	program, err2 := filepath.Abs("../../frontend/node_modules/@devcontainers/cli/devcontainer.js")
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("node", program, "read-configuration", "--workspace-folder", root, "--docker-path", docker,
		"--include-features-configuration", "--include-merged-configuration")
	c.Env = append(os.Environ(), "TMPDIR="+dir)
	var wrong bytes.Buffer
	c.Stderr = &wrong
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s\nnpm --prefix frontend ci installs it", err, wrong.Bytes())
	}
	// Sessions have the project elsewhere than the program does, unless it asks for a place.
	if !bytes.Contains(project[0].Data, []byte("workspaceFolder")) {
		out = bytes.ReplaceAll(out, []byte("/workspaces/vision"), []byte(session.Home+"/vision"))
	}
	out = bytes.ReplaceAll(out, []byte(root), []byte(localFolder))
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return said
}

func TestDevContainersAreReadAsTheSpecificationsOwnProgramDoes(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs the packages of npm")
	}
	files, err := filepath.Glob("testdata/devcontainers/*.txtar")
	if err != nil || len(files) < 30 {
		t.Fatalf("there are %d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			project := fstest.MapFS{}
			for _, f := range archive.Files {
				project[f.Name] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
			}
			c := comparison{t, read(t, project), ask(t, archive.Files)}
			c.image(project)
			c.settings()
			c.features()
			c.commands()
			c.mounts()
		})
	}
}

// comparison finds what differs between a plan and what the program says.
type comparison struct {
	*testing.T
	plan *Plan
	said reading
}

func (c comparison) same(what string, got, want any) {
	c.Helper()
	if !reflect.DeepEqual(got, want) {
		c.Errorf("%s: %v, and the program says %v", what, got, want)
	}
}

func (c comparison) image(project fstest.MapFS) {
	config, plan := c.said.Configuration, c.plan
	switch file := config.Build.Dockerfile + config.DockerFile; {
	case file != "":
		text := project[filepath.Join(filepath.Dir(plan.File), file)].Data
		c.same("Dockerfile", strings.HasPrefix(plan.Dockerfile, strings.TrimSuffix(string(text), "\n")), true)
		c.same("arguments", len(plan.Args), len(config.Build.Args))
		for name, value := range config.Build.Args {
			c.same("argument "+name, plan.Args[name], value)
		}
		if len(c.said.Features.Sets) == 0 {
			c.same("stage", plan.Target, config.Build.Target)
		}
	case len(c.said.Features.Sets) > 0:
		c.same("first line", strings.Split(plan.Dockerfile, "\n")[0], "FROM "+config.Image)
	default:
		c.same("image", plan.Image, config.Image)
	}
}

func (c comparison) settings() {
	config, plan := c.said.Configuration, c.plan
	env := map[string]string{}
	maps.Copy(env, config.ContainerEnv)
	for name, value := range config.RemoteEnv {
		if delete(env, name); value != nil {
			env[name] = *value
		}
	}
	got := map[string]string{}
	for _, one := range plan.Env {
		got[one.Name] = one.Value
	}
	c.same("variables", got, env)
	var ports []int
	for _, one := range config.ForwardPorts {
		if port := int(one.(float64)); !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	c.same("ports", plan.Ports, ports)
	memory, _ := gpu.ParseBytes(config.Needs.Memory)
	c.same("processors", plan.Minimum.CPU, config.Needs.CPUs)
	c.same("memory", plan.Minimum.Memory, memory)
	c.same("GPU", !plan.Accelerator.IsZero(), config.Needs.GPU != nil && config.Needs.GPU != false)
}

func (c comparison) features() {
	rest := c.plan.Dockerfile
	for _, set := range c.said.Features.Sets {
		name := strings.TrimPrefix(set.Source.Name, "./")
		before, after, found := strings.Cut(rest, name+",target=")
		line, _, _ := strings.Cut(after, "\n")
		if rest = after; !found {
			c.Errorf("%s is not installed, or in another order:\n%s", name, c.plan.Dockerfile)
		}
		for _, one := range set.Features {
			for option, value := range one.values() {
				assigned := option + "=" + session.ShellWord(fmt.Sprint(value)) + " "
				c.same("option "+assigned+"of "+name, strings.Contains(line, assigned), true)
			}
			for variable, value := range one.ContainerEnv {
				assigned := "ENV " + variable + `="` + value + `"`
				c.same(assigned+" of "+name, strings.Contains(before, assigned), true)
			}
		}
	}
	c.same("installed features", strings.Count(c.plan.Dockerfile, "./install.sh"), len(c.said.Features.Sets))
}

// values are the options of a feature by the names of their variables.
func (i installed) values() map[string]any {
	all, asked := map[string]any{}, map[string]any{}
	switch value := i.Value.(type) {
	case string:
		asked["version"] = value
	case map[string]any:
		asked = value
	}
	for name, one := range i.Options {
		value, chosen := asked[name]
		if !chosen {
			value = one.Default
		}
		all[strings.ToUpper(strings.ReplaceAll(name, "-", "_"))] = value
	}
	return all
}

// commands compares the scripts without the lines that name what follows.
func (c comparison) commands() {
	var want []string
	for _, key := range lifecycle {
		var all []any
		if raw := c.said.Merged[key+"s"]; len(raw) > 0 {
			if err := json.Unmarshal(raw, &all); err != nil {
				c.Fatal(err)
			}
		}
		for _, one := range all {
			for line := range strings.Lines(c.plan.commands("", one)) {
				if !strings.HasPrefix(line, "echo ''") && !strings.HasPrefix(line, "echo .") {
					want = append(want, line)
				}
			}
		}
	}
	var got []string
	_, script, _ := strings.Cut(c.plan.Setup, "\ncd "+c.said.Workspace.Folder+"\n")
	for line := range strings.Lines(script) {
		if !strings.HasPrefix(line, "echo ") || strings.HasPrefix(line, "echo 'two") {
			got = append(got, line)
		}
	}
	c.same("setup", got, want)
}

func (c comparison) mounts() {
	config, workspace := c.said.Configuration, c.said.Workspace
	c.same("place", c.plan.workspace, workspace.Folder)
	if len(c.plan.Mounts) == 0 {
		c.same("mounts", 0, len(config.Mounts))
		return
	}
	all := append([]any{workspace.Mount}, config.Mounts...)
	c.same("mounts", len(c.plan.Mounts), len(all))
	long := map[string]string{"src": "source", "dst": "target", "destination": "target"}
	for i, got := range c.plan.Mounts {
		text, ok := all[i].(string)
		if !ok {
			text = fieldsOf(all[i])
		}
		said := map[string]string{}
		for field := range strings.SplitSeq(text, ",") {
			name, value, _ := strings.Cut(field, "=")
			said[cmp.Or(long[name], name)] = value
		}
		if i == 0 && config.WorkspaceMount == "" && !session.Overlap(said["target"], workspace.Folder) {
			said["target"] = workspace.Folder // the program mounts the project elsewhere than it works
		}
		source := path.Join(localFolder, got.Path)
		if got.Name != "vision" {
			source = got.Name
		}
		_, readOnly := said["readonly"]
		c.same("source", source, path.Clean(said["source"]))
		c.same("target", got.Target, said["target"])
		c.same("read-only", got.ReadOnly, readOnly)
	}
}
