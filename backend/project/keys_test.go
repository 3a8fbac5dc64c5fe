package project

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"slipway/backend/session"
	"slipway/gpu"
)

// treatment is what a plan makes of a key.
type treatment struct {
	value string             // of the key, in JSON
	has   func(p *Plan) bool // it is honoured; nil: it is not, or there is nothing to honour
	said  string             // by which phrase it is named as not, or not wholly, supported; empty: it is not
	also  string             // other keys that it needs
}

func says(phrase, value string) treatment { return treatment{value: value, said: phrase} }

// asks is a key about which there is nothing to do: it describes the file, or asks for what each session does.
func asks(value string) treatment { return treatment{value: value} }

// specification has every key of https://containers.dev/implementors/json_reference, and the older ones that its
// schema still has, by the path to it.
var specification = map[string]treatment{
	// General properties.
	"$schema":        asks(`"https://example.com/devContainer.schema.json"`),
	"name":           asks(`"Vision"`),
	"customizations": asks(`{"vscode": {"extensions": ["a.b"]}}`),
	"extensions":     asks(`["a.b"]`),
	"settings":       asks(`{"a.b": 1}`),
	"forwardPorts": {value: `[8000]`, has: func(p *Plan) bool {
		return slices.Equal(p.Ports, []int{8000})
	}},
	"portsAttributes":      says("projectPortSettings", `{"8000": {"label": "web"}}`),
	"otherPortsAttributes": says("projectPortSettings", `{"onAutoForward": "ignore"}`),
	"containerEnv":         {value: `{"A": "1"}`, has: hasVariable},
	"remoteEnv":            {value: `{"A": "1"}`, has: hasVariable},
	"remoteUser":           says("projectUser", `"vscode"`),
	"containerUser":        says("projectUser", `"vscode"`),
	"updateRemoteUserUID":  says("projectUser", `false`),
	"userEnvProbe":         says("projectProbe", `"none"`),
	"overrideCommand":      says("projectOverride", `false`),
	"shutdownAction":       says("projectShutdown", `"none"`),
	"init":                 says("projectInit", `true`),
	"privileged":           says("projectPrivilege", `true`),
	"capAdd":               says("projectPrivilege", `["SYS_PTRACE"]`),
	"securityOpt":          says("projectPrivilege", `["seccomp=unconfined"]`),
	"secrets":              says("projectSecrets", `{"TOKEN": {"description": "of the hub"}}`),
	"mounts": {value: `["source=models,target=/m"]`, has: func(p *Plan) bool {
		return len(p.Mounts) == 2 && p.Mounts[1].Target == "/m"
	}},
	"features": {value: `{"./f": {}}`, has: func(p *Plan) bool {
		return strings.Contains(p.Dockerfile, "./install.sh")
	}},
	"overrideFeatureInstallOrder": {value: `["./g", "./f"]`, also: `"features": {"./f": {}, "./g": {}}`,
		has: func(p *Plan) bool {
			return strings.Index(p.Dockerfile, "source=g,") < strings.Index(p.Dockerfile, "source=f,")
		}},

	// Of an image or a Dockerfile.
	"image": {value: `"b:2"`, has: func(p *Plan) bool { return p.Image == "b:2" }},
	"build.dockerfile": {value: `"Dockerfile"`, has: func(p *Plan) bool {
		return p.Dockerfile == "FROM c:3 AS dev\n"
	}},
	"build.context": {value: `"f"`, has: func(p *Plan) bool {
		return slices.Contains(p.files, "install.sh")
	}},
	"build.args":      {value: `{"WHO": "a"}`, has: func(p *Plan) bool { return p.Args["WHO"] == "a" }},
	"build.target":    {value: `"dev"`, has: func(p *Plan) bool { return p.Target == "dev" }},
	"build.options":   says("projectBuildKey", `["--no-cache"]`),
	"build.cacheFrom": says("projectBuildKey", `"c:3"`),
	"appPort":         says("projectAppPort", `8000`),
	"workspaceFolder": {value: `"/src"`, has: func(p *Plan) bool { return p.workspace == "/src" }},
	"workspaceMount": {value: `"type=bind,source=${localWorkspaceFolder},target=/src"`,
		has: func(p *Plan) bool { return p.workspace == "/src" }},
	"runArgs": {value: `["-e", "A=1"]`, has: hasVariable},
	"dockerFile": {value: `"Dockerfile"`, has: func(p *Plan) bool {
		return p.Dockerfile == "FROM c:3 AS dev\n"
	}},
	"context": {value: `"."`, also: `"dockerFile": "Dockerfile"`, has: func(p *Plan) bool {
		return slices.Contains(p.files, "Dockerfile")
	}},

	// Of Docker Compose.
	"dockerComposeFile": says("projectCompose", `"compose.yml"`),
	"service":           says("projectCompose", `"app"`),
	"runServices":       says("projectCompose", `["db"]`),

	// Scripts.
	"initializeCommand":    says("projectInitialize", `"echo x"`),
	"onCreateCommand":      {value: `"echo x"`, has: hasCommand},
	"updateContentCommand": {value: `"echo x"`, has: hasCommand},
	"postCreateCommand":    {value: `"echo x"`, has: hasCommand},
	"postStartCommand":     {value: `"echo x"`, has: hasCommand},
	"postAttachCommand":    {value: `"echo x"`, has: hasCommand, said: "projectAttach"},
	"waitFor":              says("projectWait", `"postCreateCommand"`),

	// What the machine must have.
	"hostRequirements.cpus":    {value: `2`, has: func(p *Plan) bool { return p.Minimum.CPU == 2 }},
	"hostRequirements.memory":  {value: `"4gb"`, has: func(p *Plan) bool { return p.Minimum.Memory == 4*gpu.GiB }},
	"hostRequirements.storage": says("projectStorage", `"32gb"`),
	"hostRequirements.gpu": {value: `true`, has: func(p *Plan) bool {
		return p.Accelerator == gpu.Request{Devices: 1}
	}},
	"hostRequirements.gpu.cores": {value: `1000`, said: "projectCores", has: func(p *Plan) bool {
		return p.Accelerator == gpu.Request{Devices: 1}
	}},
	"hostRequirements.gpu.memory": {value: `"32gb"`, has: func(p *Plan) bool {
		return p.Accelerator == gpu.Request{Memory: 32 * gpu.GiB}
	}},
}

func hasVariable(p *Plan) bool {
	return slices.Equal(p.Env, []session.EnvVar{{Name: "A", Value: "1"}})
}

func hasCommand(p *Plan) bool { return strings.Contains(p.Setup, "\nsh -c 'echo x'\n") }

// fileOf writes a devcontainer.json with a key and its value.
func fileOf(key string, of treatment) string {
	parts := strings.Split(key, ".")
	if parts[0] == "build" && key != "build.dockerfile" {
		return `{"build": {"dockerfile": "Dockerfile", "` + parts[1] + `": ` + of.value + `}}`
	}
	for _, part := range slices.Backward(parts[1:]) {
		of.value = `{"` + part + `": ` + of.value + `}`
	}
	if of.also != "" {
		of.value += ", " + of.also
	}
	return `{"image": "a:1", "` + parts[0] + `": ` + of.value + `}`
}

func TestEachKeyOfTheSpecificationIsHonouredOrNamed(t *testing.T) {
	bare := readContainer(t, `{"image": "a:1"}`)
	for key, of := range specification {
		text := fileOf(key, of)
		plan := readContainer(t, text)
		if of.has != nil && !of.has(plan) {
			t.Errorf("%s: %s becomes %+v", key, text, plan.Project)
		}
		var want []string
		if of.said != "" {
			want = []string{key + " " + of.said}
		} else if of.has == nil && !reflect.DeepEqual(plan.Project, bare.Project) {
			t.Errorf("%s: %s becomes %+v, want %+v", key, text, plan.Project, bare.Project)
		}
		if got := leftOf(plan); !slices.Equal(got, want) {
			t.Errorf("%s: %s is said, want %q", key, got, want)
		}
	}
}

// readContainer reads a devcontainer.json with a Dockerfile and features beside it.
func readContainer(t *testing.T, text string) *Plan {
	t.Helper()
	return read(t, tree(".devcontainer.json", text, "Dockerfile", "FROM c:3 AS dev\n",
		"f/install.sh", "", "f/devcontainer-feature.json", "{}",
		"g/install.sh", "", "g/devcontainer-feature.json", "{}"))
}

// leftOf lists what is left, each with the key of the phrase that says why.
func leftOf(p *Plan) (all []string) {
	for _, one := range p.Left {
		all = append(all, one.What+" "+one.Why.Say)
	}
	return all
}

func TestWhatSessionsDoByThemselvesNeedsNoRemark(t *testing.T) {
	plan := readContainer(t, `{"image": "a:1", "overrideCommand": true, "updateRemoteUserUID": true,
		"runArgs": ["--init", "--rm"], "hostRequirements": {"gpu": false}}`)
	if bare := readContainer(t, `{"image": "a:1"}`); !reflect.DeepEqual(plan.Project, bare.Project) {
		t.Errorf("it becomes %+v, want %+v", plan.Project, bare.Project)
	}
}

func TestUnknownKeysAreNamed(t *testing.T) {
	plan := readContainer(t, `{"build": {"dockerfile": "Dockerfile", "platform": "x"}, "storage": "1gb",
		"hostRequirements": {"disk": "1gb", "gpu": {"vendor": "x"}}}`)
	want := []string{"storage projectUnknown", "build.platform projectUnknown",
		"hostRequirements.disk projectUnknown", "hostRequirements.gpu.vendor projectUnknown"}
	if got := leftOf(plan); !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
}

func TestAnOptionalDeviceIsAskedForWhereThereIsOne(t *testing.T) {
	for _, has := range []bool{false, true} {
		at, want, said := vision, gpu.Request{}, []string{"hostRequirements.gpu projectNoDevice"}
		if at.Devices = has; has {
			want, said = gpu.Request{Devices: 1}, nil
		}
		plan, err := Read(t.Context(), tree(".devcontainer.json",
			`{"image": "a:1", "hostRequirements": {"gpu": "optional"}}`), at, session.ProjectRequest{})
		if err != nil || plan.Accelerator != want || !slices.Equal(leftOf(plan), said) {
			t.Errorf("with a device %v: %+v, %v", has, plan, err)
		}
	}
	for _, asked := range []string{`"maybe"`, `1`, `{"memory": 3}`, `{"memory": "much"}`} {
		text := `{"image": "a:1", "hostRequirements": {"gpu": ` + asked + `}}`
		_, err := Read(t.Context(), tree(".devcontainer.json", text), vision, session.ProjectRequest{})
		if session.CodeOf(err) != session.CodeFileInvalid {
			t.Errorf("%s: %v", asked, err)
		}
	}
}

func TestArgumentsOfDockerRunAreTakenOverOrNamed(t *testing.T) {
	needs := func(minimum session.Resources, devices gpu.Request, env ...session.EnvVar) session.ProjectNeeds {
		return session.ProjectNeeds{Minimum: minimum, Accelerator: devices, Env: env}
	}
	one := session.EnvVar{Name: "A", Value: "1=2"}
	for args, c := range map[string]struct {
		needs session.ProjectNeeds
		left  []string
	}{
		`"-e", "A=1=2"`:      {needs(session.Resources{}, gpu.Request{}, one), nil},
		`"-eA=1=2"`:          {needs(session.Resources{}, gpu.Request{}, one), nil},
		`"--env=A=1=2"`:      {needs(session.Resources{}, gpu.Request{}, one), nil},
		`"--env", "A=1=2"`:   {needs(session.Resources{}, gpu.Request{}, one), nil},
		`"-e", "A"`:          {needs(session.Resources{}, gpu.Request{}), []string{"-e projectRunArg"}},
		`"--env", "A B=1"`:   {needs(session.Resources{}, gpu.Request{}), []string{"A B projectVariableName"}},
		`"--memory=2g"`:      {needs(session.Resources{Memory: 2 * gpu.GiB}, gpu.Request{}), nil},
		`"-m", "2g"`:         {needs(session.Resources{Memory: 2 * gpu.GiB}, gpu.Request{}), nil},
		`"-m2G"`:             {needs(session.Resources{Memory: 2 * gpu.GiB}, gpu.Request{}), nil},
		`"--memory", "much"`: {needs(session.Resources{}, gpu.Request{}), []string{"--memory projectRunArg"}},
		`"--cpus", "1.5"`:    {needs(session.Resources{CPU: 2}, gpu.Request{}), nil},
		`"--cpus=0"`:         {needs(session.Resources{}, gpu.Request{}), []string{"--cpus projectRunArg"}},
		`"--shm-size", "1g"`: {needs(session.Resources{Shm: gpu.GiB}, gpu.Request{}), nil},
		`"--gpus", "2"`:      {needs(session.Resources{}, gpu.Request{Devices: 2}), nil},
		`"--gpus=0"`:         {needs(session.Resources{}, gpu.Request{}), nil},
		`"--gpus", "all"`: {needs(session.Resources{}, gpu.Request{Devices: 1}),
			[]string{"--gpus all projectAllDevices"}},
		`"--gpus", "device=0"`: {needs(session.Resources{}, gpu.Request{}), []string{"--gpus projectRunArg"}},
		`"--gpus=-1"`:          {needs(session.Resources{}, gpu.Request{}), []string{"--gpus projectRunArg"}},
		`"--network=host", "--name=a"`: {needs(session.Resources{}, gpu.Request{}),
			[]string{"--network projectRunArg", "--name projectRunArg"}},
		`"-v", "/etc:/e", "--privileged"`: {needs(session.Resources{}, gpu.Request{}),
			[]string{"-v projectRunArg", "--privileged projectRunArg"}},
	} {
		plan := readContainer(t, `{"image": "a:1", "runArgs": [`+args+`]}`)
		if !reflect.DeepEqual(plan.ProjectNeeds, c.needs) {
			t.Errorf("%s becomes %+v, want %+v", args, plan.ProjectNeeds, c.needs)
		}
		var want []string
		for _, left := range c.left {
			if !strings.HasSuffix(left, "projectVariableName") {
				left = "runArgs " + left
			}
			want = append(want, left)
		}
		if got := leftOf(plan); !slices.Equal(got, want) {
			t.Errorf("%s leaves %q, want %q", args, got, want)
		}
	}
	plan := readContainer(t, `{"image": "a:1", "containerEnv": {"A": "1", "B": "1"}, "remoteEnv": {"B": "3"},
		"runArgs": ["-e", "A=2", "-e", "B=2", "--memory=1g"], "hostRequirements": {"memory": "2gb"}}`)
	if want := needs(session.Resources{Memory: 2 * gpu.GiB}, gpu.Request{}, session.EnvVar{Name: "A", Value: "2"},
		session.EnvVar{Name: "B", Value: "3"}); !reflect.DeepEqual(plan.ProjectNeeds, want) {
		t.Errorf("together they become %+v, want %+v", plan.ProjectNeeds, want)
	}
}

func TestSettingsInLabelsOfImagesAreNamed(t *testing.T) {
	at := vision
	for label, said := range map[string][]string{"": nil, "[]": nil, "[ {}\n]": nil,
		`[{"remoteUser": "vscode"}]`: {"devcontainer.metadata a:1 projectMetadata"}} {
		at.Labels = func(image string) map[string]string {
			return map[string]string{"devcontainer.metadata": label}
		}
		plan, err := Read(t.Context(), tree(".devcontainer.json", `{"image": "a:1"}`), at, session.ProjectRequest{})
		if err != nil || !slices.Equal(leftOf(plan), said) {
			t.Errorf("%q: %+v, %v", label, plan, err)
		}
	}
}
