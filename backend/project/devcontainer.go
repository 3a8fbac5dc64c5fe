package project

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"slipway/backend/session"
)

// devContainer is what is taken over of a devcontainer.json, see https://containers.dev/implementors/json_reference.
type devContainer struct {
	Image string `json:"image"`
	Build struct {
		Dockerfile string            `json:"dockerfile"`
		Context    string            `json:"context"`
		Args       map[string]string `json:"args"`
		Target     string            `json:"target"`
	} `json:"build"`
	DockerFile   string             `json:"dockerFile"` // older names
	Context      string             `json:"context"`
	ContainerEnv map[string]string  `json:"containerEnv"`
	RemoteEnv    map[string]*string `json:"remoteEnv"`
	ForwardPorts []any              `json:"forwardPorts"`
	Needs        struct {
		CPUs   int    `json:"cpus"`
		Memory string `json:"memory"`
		GPU    any    `json:"gpu"`
	} `json:"hostRequirements"`
	RunArgs  []string       `json:"runArgs"`
	Features map[string]any `json:"features"`
	First    []string       `json:"overrideFeatureInstallOrder"`

	WorkspaceFolder string `json:"workspaceFolder"`
	WorkspaceMount  string `json:"workspaceMount"`
	Mounts          []any  `json:"mounts"`
}

// taken are the keys that are taken over, or that say nothing about a session, by the object that has them.
var taken = map[string][]string{
	"": {"image", "build", "dockerFile", "context", "containerEnv", "remoteEnv", "forwardPorts", "hostRequirements",
		"runArgs", "features", "overrideFeatureInstallOrder", "workspaceFolder", "workspaceMount", "mounts",
		"overrideCommand", "updateRemoteUserUID", "name", "$schema", "customizations", "extensions", "settings"},
	"build.":            {"dockerfile", "context", "args", "target"},
	"hostRequirements.": {"cpus", "memory", "gpu"},
}

// lifecycle are the commands that a session runs, in their order. They all come after its start, since it starts once.
var lifecycle = []string{"onCreateCommand", "updateContentCommand", "postCreateCommand", "postStartCommand", attach}

// attach is the command that would run at each attach, which sessions do not have.
const attach = "postAttachCommand"

// refused are the phrases of keys that are not taken over. All others are unknown.
var refused = map[string]string{
	"initializeCommand": "projectInitialize", "dockerComposeFile": "projectCompose", "service": "projectCompose",
	"runServices": "projectCompose", "entrypoint": "projectStart", "mounts": "projectMounts",
	"remoteUser": "projectUser", "containerUser": "projectUser", "privileged": "projectPrivilege",
	"capAdd": "projectPrivilege", "securityOpt": "projectPrivilege", "init": "projectInit", "appPort": "projectAppPort",
	"userEnvProbe": "projectProbe", "portsAttributes": "projectPortSettings",
	"otherPortsAttributes": "projectPortSettings", "waitFor": "projectWait", "shutdownAction": "projectShutdown",
	"secrets": "projectSecrets", "build.cacheFrom": "projectBuildKey", "build.options": "projectBuildKey",
	"hostRequirements.storage": "projectStorage", "hostRequirements.gpu.cores": "projectCores",
}

func (p *Plan) readDevContainer(environment string) error {
	var keys map[string]any
	var d devContainer
	if err := p.readJSON(p.File, &keys, &d); err != nil {
		return err
	}
	p.leaveKeys(keys)
	p.readMounts(d)
	p.ports(d.ForwardPorts)
	if err := p.needs(d); err != nil {
		return err
	}
	p.env(d, p.runArgs(d.RunArgs))
	features, err := p.readFeatures(d.Features, d.First)
	if err != nil {
		return err
	}
	p.setUp(features, keys)
	project, context := p.tree, "."
	switch {
	case keys["dockerComposeFile"] != nil:
		p.Image = environment
	case d.Build.Dockerfile != "" || d.DockerFile != "":
		if context, err = p.build(d); err != nil {
			return err
		}
	case d.Image == "":
		p.Image = environment
	case !session.ValidImage(d.Image):
		return invalid("image", fmt.Sprintf("%q in %s is not the name of an image.", session.Clip(d.Image), p.File),
			"Write it as for docker pull, for example python:3.13.")
	default:
		p.Image, p.Bases = d.Image, []string{d.Image}
	}
	return p.install(features, project, context)
}

// leaveKeys notes the keys that are not taken over, and values of others that sessions do not have.
func (p *Plan) leaveKeys(keys map[string]any) {
	p.leaveOthers("", keys, taken[""])
	for _, object := range []string{"build", "hostRequirements"} {
		inner, _ := keys[object].(map[string]any)
		p.leaveOthers(object+".", inner, taken[object+"."])
	}
	if keys["overrideCommand"] == false {
		p.leave("overrideCommand", "projectOverride")
	}
	if keys["updateRemoteUserUID"] == false {
		p.leave("updateRemoteUserUID", "projectUser")
	}
}

// leaveOthers notes the keys that are neither among known nor commands.
func (p *Plan) leaveOthers(prefix string, keys map[string]any, known []string) {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains(known, key) && !slices.Contains(lifecycle, key) {
			p.leave(prefix+key, cmp.Or(refused[prefix+key], refused[key], "projectUnknown"))
		}
	}
}

// build takes the Dockerfile that is named, with paths from the directory of the file, and returns that of the context.
func (p *Plan) build(d devContainer) (context string, err error) {
	at := path.Dir(p.File)
	file, context := d.Build.Dockerfile, d.Build.Context
	if file == "" {
		file, context = d.DockerFile, d.Context
	}
	file, context = path.Join(at, file), path.Join(at, context)
	for _, one := range []string{file, context} {
		if one == ".." || strings.HasPrefix(one, "../") || path.IsAbs(one) {
			return "", invalid(p.File, fmt.Sprintf("%q lies outside of the project.", session.Clip(one)),
				"Use a path inside of it.")
		}
	}
	p.Target, p.Args = d.Build.Target, map[string]string{}
	for name, value := range d.Build.Args {
		p.Args[name] = p.value("build.args."+name, value)
	}
	return context, p.readDockerfile(context, file)
}

// env takes over the variables, with those of runArgs. Those of remoteEnv win, as they do for the tools of a
// devcontainer.
func (p *Plan) env(d devContainer, args map[string]string) {
	values := map[string]string{}
	for name, value := range d.ContainerEnv {
		values[name] = p.value("containerEnv."+name, value)
	}
	maps.Copy(values, args)
	for name, value := range d.RemoteEnv {
		if value == nil {
			delete(values, name)
			continue
		}
		values[name] = p.value("remoteEnv."+name, *value)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !envName.MatchString(name) || len(p.Env) == session.MaxEnv {
			p.leave(name, "projectVariableName")
			continue
		}
		p.Env = append(p.Env, session.EnvVar{Name: name, Value: values[name]})
	}
}

// setUp takes over the commands, those of features first. The first that fails is the last.
func (p *Plan) setUp(features []*feature, keys map[string]any) {
	var script strings.Builder
	for _, key := range lifecycle {
		begun := script.Len()
		for _, f := range features {
			script.WriteString(p.commands(f.name+" "+key, f.keys[key]))
		}
		script.WriteString(p.commands(key, keys[key]))
		if key == attach && script.Len() > begun {
			p.leave(attach, "projectAttach")
		}
	}
	if script.Len() > 0 {
		p.Setup = "set -e\ncd " + session.ShellWord(p.workspace) + "\n" + script.String()
	}
}

// commands returns a command as lines of a script. It has three forms: a line for sh, the words of a program, or
// several of both by their names, which run one after the other.
func (p *Plan) commands(key string, value any) string {
	named, ok := value.(map[string]any)
	if !ok {
		return p.command(key, value)
	}
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(named)) {
		all.WriteString(p.command(key+"."+name, named[name]))
	}
	return all.String()
}

func (p *Plan) command(key string, value any) string {
	var line string
	switch value := value.(type) {
	case nil:
	case string:
		if value = strings.TrimSpace(p.value(key, value)); value != "" {
			line = "sh -c " + session.ShellWord(value)
		}
	case []any:
		var words []string
		for _, one := range value {
			word, ok := one.(string)
			if !ok {
				p.leave(key, "projectCommandForm")
				return ""
			}
			words = append(words, session.ShellWord(p.value(key, word)))
		}
		line = strings.Join(words, " ")
	default:
		p.leave(key, "projectCommandForm")
	}
	if line == "" {
		return ""
	}
	return "echo " + session.ShellWord(key) + "\n" + line + "\n"
}

var (
	envName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	variables = regexp.MustCompile(`\$\{([^}:]+)(?::([^}:]*))?(?::([^}:]*))?[^}]*\}`)
)

// value fills in the variables of a value. Those of the person's computer have their default: they are not known here.
func (p *Plan) value(key, text string) string {
	return variables.ReplaceAllStringFunc(text, func(found string) string {
		value, known := p.variable(variables.FindStringSubmatch(found))
		if !known {
			p.leave(key, "projectVariable", session.Fill("variable", found))
		}
		return value
	})
}

// filled fills in the variables of a text. It is not known if one of them is not.
func (p *Plan) filled(text string) (_ string, known bool) {
	known = true
	return variables.ReplaceAllStringFunc(text, func(found string) string {
		value, ok := p.variable(variables.FindStringSubmatch(found))
		known = known && ok
		return value
	}), known
}

// variable returns the value of a variable, or its default if it is not known. It gets the parts of its expression.
func (p *Plan) variable(part []string) (value string, known bool) {
	switch part[1] {
	case "localWorkspaceFolderBasename":
		return path.Base(p.place.name()), true
	case "containerWorkspaceFolderBasename":
		return path.Base(p.workspace), true
	case "containerWorkspaceFolder":
		return p.workspace, true
	case "localEnv", "containerEnv":
		return part[3], false
	}
	return "", false
}

func (p *Plan) ports(all []any) {
	for _, one := range all {
		number, ok := one.(float64)
		if !ok || number != float64(int(number)) || number < 1 || number > 65535 ||
			session.ReservedPort(int(number)) || len(p.Ports) == session.MaxPorts {
			p.leave(fmt.Sprintf("forwardPorts %v", one), "projectPort")
			continue
		}
		if !slices.Contains(p.Ports, int(number)) {
			p.Ports = append(p.Ports, int(number))
		}
	}
}
