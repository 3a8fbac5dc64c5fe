package project

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"slipway/backend/session"
	"slipway/gpu"
)

const environment = "lab/jupyter:1"

var vision = Place{Folder: session.Folder{ID: "visionvision", Name: "vision", Owner: "ada"}, Others: []session.Folder{
	{ID: "modelsmodels", Name: "models", State: session.FolderReady},
	{ID: "goodbyegoodb", Name: "goodbye", State: session.FolderTrashed}}}

// tree makes the files of a project: pairs of a path and a content.
func tree(files ...string) fstest.MapFS {
	made := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		made[files[i]] = &fstest.MapFile{Data: []byte(files[i+1]), Mode: 0o644}
	}
	return made
}

func read(t *testing.T, files fstest.MapFS) *Plan {
	t.Helper()
	plan, err := Read(t.Context(), files, vision, session.ProjectRequest{Environment: environment})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// content lists what is in the context of a build.
func content(t *testing.T, plan *Plan) (names []string) {
	t.Helper()
	var archive bytes.Buffer
	if err := plan.Context(t.Context(), &archive); err != nil {
		t.Fatal(err)
	}
	for from := tar.NewReader(&archive); ; {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
}

func TestTheFirstFileDecides(t *testing.T) {
	const from = "FROM a:1\n"
	for name, c := range map[string]struct {
		files fstest.MapFS
		kind  session.ProjectKind
		file  string
		says  []string // in the Dockerfile, in this order
		sent  []string // in the context
	}{
		"nothing":          {tree("main.py", ""), session.ProjectPlain, "", nil, nil},
		"an empty project": {tree(), session.ProjectPlain, "", nil, nil},
		"a devcontainer before a Dockerfile": {
			tree(".devcontainer/devcontainer.json", `{"image": "a:1"}`, "Dockerfile", from),
			session.ProjectDevContainer, ".devcontainer/devcontainer.json", nil, nil},
		"a devcontainer at the root": {
			tree(".devcontainer.json", `{"build": {"dockerfile": "Dockerfile"}}`, "Dockerfile", from),
			session.ProjectDevContainer, ".devcontainer.json", []string{from},
			[]string{Dockerfile, ".devcontainer.json", "Dockerfile"}},
		"a Dockerfile before packages": {
			tree("Dockerfile", from, "requirements.txt", "a", "x/y", "", ".dockerignore", "x"),
			session.ProjectDockerfile, "Dockerfile", []string{from},
			[]string{Dockerfile, ".dockerignore", "Dockerfile", "requirements.txt"}},
		"requirements": {tree("requirements.txt", "tiny==1.0\n# local\n", "main.py", ""), session.ProjectPackages,
			"requirements.txt", []string{"FROM " + environment, "COPY requirements.txt", "pip install -r"},
			[]string{Dockerfile, "requirements.txt"}},
		"requirements that name files": {tree("requirements.txt", "./tiny-1.0-py3-none-any.whl\n", "main.py", ""),
			session.ProjectPackages, "requirements.txt", []string{"COPY . .", "pip install -r"},
			[]string{Dockerfile, "main.py", "requirements.txt"}},
		"conda before pip": {tree("environment.yml", "", "requirements.txt", ""), session.ProjectPackages,
			"environment.yml", []string{"COPY environment.yml", "env update"}, []string{Dockerfile, "environment.yml"}},
		"a lock of uv": {tree("pyproject.toml", "", "uv.lock", ""), session.ProjectPackages, "pyproject.toml",
			[]string{"COPY pyproject.toml uv.lock", "uv export"}, []string{Dockerfile, "pyproject.toml", "uv.lock"}},
		"pyproject alone": {tree("pyproject.toml", "", "a.py", ""), session.ProjectPackages, "pyproject.toml",
			[]string{"COPY . .", "pip install ."}, []string{Dockerfile, "a.py", "pyproject.toml"}},
		"setup.py": {tree("setup.py", ""), session.ProjectPackages, "setup.py", []string{"pip install ."},
			[]string{Dockerfile, "setup.py"}},
		"Pipfile": {tree("Pipfile", "", "Pipfile.lock", ""), session.ProjectPackages, "Pipfile",
			[]string{"COPY Pipfile Pipfile.lock", "pipenv"}, []string{Dockerfile, "Pipfile", "Pipfile.lock"}},
		"Debian packages first, then R": {tree("apt.txt", "tree # to look\n\nlibfoo1.2-dev=1:2.3-4\n", "install.R", ""),
			session.ProjectPackages, "apt.txt", []string{"tree libfoo1.2-dev=1:2.3-4", "Rscript install.R"},
			[]string{Dockerfile, "install.R"}},
		"binder's folder alone": {tree("binder/requirements.txt", "a", "setup.py", ""), session.ProjectPackages,
			"binder/requirements.txt", []string{"pip install -r"}, []string{Dockerfile, "requirements.txt"}},
		"binder's Dockerfile, with the whole project": {tree(".binder/Dockerfile", from, "a.py", ""),
			session.ProjectDockerfile, ".binder/Dockerfile", []string{from},
			[]string{Dockerfile, ".binder/", ".binder/Dockerfile", "a.py"}},
		"postBuild sees everything": {tree("requirements.txt", "a", "postBuild", "echo", "a.py", ""),
			session.ProjectPackages, "requirements.txt",
			[]string{"COPY requirements.txt", "-r", "COPY . .", "./postBuild"},
			[]string{Dockerfile, "a.py", "postBuild", "requirements.txt"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := read(t, c.files)
			if plan.Kind != c.kind || plan.File != c.file {
				t.Errorf("it is %s by %q, want %s by %q", plan.Kind, plan.File, c.kind, c.file)
			}
			rest := plan.Dockerfile
			for _, part := range c.says {
				_, after, ok := strings.Cut(rest, part)
				if !ok {
					t.Fatalf("the Dockerfile lacks %q there:\n%s", part, plan.Dockerfile)
				}
				rest = after
			}
			if (plan.Dockerfile == "") != (len(c.says) == 0) {
				t.Errorf("the Dockerfile is %q", plan.Dockerfile)
			}
			if c.sent != nil {
				if sent := content(t, plan); !slices.Equal(sent, c.sent) {
					t.Errorf("the context has %q, want %q", sent, c.sent)
				}
			}
			if strings.HasPrefix(plan.Image, "slipway-custom/ada/vision:project-") != (len(c.says) > 0) {
				t.Errorf("the image is %s", plan.Image)
			}
		})
	}
}

func TestAnotherFileCanBeChosen(t *testing.T) {
	files := tree("Dockerfile", "FROM a:1", "requirements.txt", "b")
	plan, err := Read(t.Context(), files, vision,
		session.ProjectRequest{Environment: environment, File: "requirements.txt"})
	if err != nil || plan.Kind != session.ProjectPackages {
		t.Errorf("it is %+v, %v", plan, err)
	}
	if want := []string{"Dockerfile", "requirements.txt"}; !slices.Equal(plan.Files, want) {
		t.Errorf("its files are %q, want %q", plan.Files, want)
	}
	_, err = Read(t.Context(), files, vision, session.ProjectRequest{File: "../other"})
	if session.CodeOf(err) != session.CodeFileNotFound {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestTheImageIsNamedByItsContent(t *testing.T) {
	first := read(t, tree("requirements.txt", "a", "main.py", "1")).Image
	for name, c := range map[string]struct {
		files fstest.MapFS
		same  bool
	}{
		"other code":                {tree("requirements.txt", "a", "main.py", "2"), true},
		"another commit":            {tree("requirements.txt", "a", ".git/HEAD", "1", "main.py", "1"), true},
		"another package":           {tree("requirements.txt", "b", "main.py", "1"), false},
		"a further list":            {tree("requirements.txt", "a", "apt.txt", "tree"), false},
		"code that is in the image": {tree("requirements.txt", "a", "postBuild", ""), false},
	} {
		if got := read(t, c.files).Image; (got == first) != c.same {
			t.Errorf("%s: the image is %s, before it was %s", name, got, first)
		}
	}
}

func TestADevContainerIsTakenOver(t *testing.T) {
	plan := read(t, tree(".devcontainer/devcontainer.json", `{
		// of the editor
		"name": "Vision", "customizations": {"vscode": {}},
		"build": {"dockerfile": "Dockerfile", "context": "..", "args": {"VARIANT": "3.12"}, "target": "dev"},
		"containerEnv": {"A": "1", "WHERE": "${containerWorkspaceFolder}/x", "HOST": "${localEnv:HOST:none}"},
		"remoteEnv": {"A": "2", "B": null, "bad name": "x"},
		"forwardPorts": [8000, "db:5432", 70000],
		"hostRequirements": {"cpus": 4, "memory": "8gb", "gpu": "optional"},
		"runArgs": ["--shm-size=1g", "--cap-add", "SYS_ADMIN", "--init"],
		"features": {"ghcr.io/devcontainers/features/node:1": {}},
		"initializeCommand": "rm -rf /", "remoteUser": "vscode",
		"onCreateCommand": {"b": ["tar", "xf", "it's.tar"], "a": "date; id", "c": {"d": "e"}},
		"postCreateCommand": "pip install -e ${containerWorkspaceFolder}", "postAttachCommand": "git status",
		"updateContentCommand": [1], "postStartCommand": " ",
		"somethingNew": true,
	}`, ".devcontainer/Dockerfile", "FROM --platform=linux/amd64 a:1 AS base\nFROM base AS dev\n", "a.py", ""))
	if plan.Target != "dev" || plan.Args["VARIANT"] != "3.12" || !slices.Equal(plan.Bases, []string{"a:1"}) {
		t.Errorf("the build is of %q with %v from %q", plan.Target, plan.Args, plan.Bases)
	}
	if want := []session.EnvVar{{Name: "A", Value: "2"}, {Name: "HOST", Value: "none"},
		{Name: "WHERE", Value: "/home/work/vision/x"}}; !slices.Equal(plan.Env, want) {
		t.Errorf("the variables are %v, want %v", plan.Env, want)
	}
	if !slices.Equal(plan.Ports, []int{8000}) || !plan.Accelerator.IsZero() ||
		plan.Minimum != (session.Resources{CPU: 4, Memory: 8 * gpu.GiB, Shm: gpu.GiB}) {
		t.Errorf("it asks for %v, %+v and devices %v", plan.Ports, plan.Minimum, plan.Accelerator)
	}
	const setup = `set -e
cd /home/work/vision
echo onCreateCommand.a
sh -c 'date; id'
echo onCreateCommand.b
tar xf 'it'\''s.tar'
echo postCreateCommand
sh -c 'pip install -e /home/work/vision'
echo postAttachCommand
sh -c 'git status'
`
	if plan.Setup != setup {
		t.Errorf("the session runs\n%s\nwant\n%s", plan.Setup, setup)
	}
	if sent := content(t, plan); !slices.Contains(sent, "a.py") {
		t.Errorf("the context has %q", sent)
	}
	left := map[string]bool{}
	for _, one := range plan.Left {
		left[one.What] = true
		if one.Why.English() == "" {
			t.Errorf("%s is left for no reason", one.What)
		}
	}
	for _, want := range []string{"features ghcr.io/devcontainers/features/node:1", "initializeCommand",
		"postAttachCommand", "updateContentCommand", "onCreateCommand.c", "remoteUser", "somethingNew",
		"forwardPorts db:5432", "forwardPorts 70000", "runArgs --cap-add", "containerEnv.HOST", "bad name"} {
		if !left[want] {
			t.Errorf("it is not said that %s is left; said is %v", want, left)
		}
	}
	if left["customizations"] || left["runArgs --init"] {
		t.Errorf("it is said that something is left that means nothing: %v", left)
	}
}

func TestWhatCannotBeUnderstoodIsSaid(t *testing.T) {
	container := func(text string) fstest.MapFS { return tree(".devcontainer.json", text) }
	for name, c := range map[string]struct {
		files fstest.MapFS
		says  string
	}{
		"two folders of binder":       {tree("binder/a", "", ".binder/a", ""), "both .binder and binder"},
		"a broken devcontainer":       {container(`{"image": `), "cannot be understood"},
		"a wrong type":                {container(`{"image": 3}`), "cannot be understood"},
		"no name of an image":         {container(`{"image": "a b"}`), "not the name of an image"},
		"a Dockerfile outside":        {container(`{"build": {"dockerfile": "../x"}}`), "outside"},
		"a context outside":           {container(`{"build": {"dockerfile": "x", "context": ".."}}`), "outside"},
		"a Dockerfile that is absent": {container(`{"build": {"dockerfile": "x"}}`), "no file x"},
		"no FROM":                     {tree("Dockerfile", "RUN true"), "no line FROM"},
		"no text":                     {tree("Dockerfile", "FROM a\x00"), "not text"},
		"a command among packages":    {tree("apt.txt", "tree; rm -rf /"), "not the name of a Debian package"},
		"a wrong pattern":             {tree("Dockerfile", "FROM a", ".dockerignore", "[a"), "cannot be understood"},
		"a wrong amount":              {container(`{"hostRequirements": {"memory": "much"}}`), "no amount"},
		"a feature outside":           {container(`{"image": "a", "features": {"../f": {}}}`), "no directory of the"},
		"a feature with a comma":      {container(`{"image": "a", "features": {"./f,rw": {}}}`), "no directory of the"},
		"a feature that is absent":    {container(`{"image": "a", "features": {"./f": {}}}`), "no file f/dev"},
		"a feature without a script": {tree(".devcontainer.json", `{"image": "a", "features": {"./f": {}}}`,
			"f/devcontainer-feature.json", "{}"), "no file f/install.sh"},
		"a feature outside of the context": {tree(".devcontainer/devcontainer.json",
			`{"build": {"dockerfile": "../d/Dockerfile", "context": "../d"}, "features": {"./f": {}}}`, "d/Dockerfile",
			"FROM a", ".devcontainer/f/devcontainer-feature.json", "{}", ".devcontainer/f/install.sh", ""),
			"not in the context"},
		"features that wait for each other": {tree(".devcontainer.json",
			`{"image": "a", "features": {"./f": {}, "./g": {}}}`,
			"f/devcontainer-feature.json", `{"installsAfter": ["./g"]}`, "f/install.sh", "",
			"g/devcontainer-feature.json", `{"dependsOn": {"./f": {}}}`, "g/install.sh", ""), "wait for each other"},
	} {
		_, err := Read(t.Context(), c.files, vision, session.ProjectRequest{Environment: environment})
		e := session.AsError(err, "")
		said := e.Message
		for _, field := range e.Fields {
			said += " " + field.Message
		}
		if err == nil || !strings.Contains(said, c.says) {
			t.Errorf("%s: %q, want %q", name, said, c.says)
		}
	}
}

// FuzzDevContainer reads any text as a devcontainer.json: it is taken over or refused, and what is taken over is valid.
func FuzzDevContainer(f *testing.F) {
	f.Add(`{"image": "a:1", "forwardPorts": [1], "containerEnv": {"A": "${localEnv:B:c}"}}`)
	f.Add(`{"build": {"dockerfile": "Dockerfile", "context": "..", "args": {"a": "b"}}}`)
	f.Add(`{"runArgs": ["--shm-size", "1g", "--gpus=all"], "hostRequirements": {"cpus": -1, "memory": "1tb"}}`)
	f.Add(`{"image": "a:1", "features": {"./f": {"a": "'", "b-1": 2}}, "overrideFeatureInstallOrder": ["./f"]}`)
	f.Add(`{"image": "a:1", "workspaceFolder": "/a/../b",
		"mounts": ["type=bind,source=${localWorkspaceFolder}/../f,target=/c", {"source": "models", "dst": "/d"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		files := tree(".devcontainer.json", text, "Dockerfile", "FROM a", "f/install.sh", "",
			"f/devcontainer-feature.json", `{"dependsOn": {"./f": {}}, "options": {"c": {"default": true}}}`)
		plan, err := Read(t.Context(), files, vision, session.ProjectRequest{Environment: environment})
		if err != nil {
			if session.CodeOf(err) == "" {
				t.Errorf("%q fails without a code: %v", text, err)
			}
			return
		}
		if !session.ValidImage(plan.Image) || len(plan.Ports) > session.MaxPorts || len(plan.Left) > mostLeft {
			t.Errorf("%q becomes %+v", text, plan.Project)
		}
		for _, m := range plan.Mounts {
			if m.Folder != "visionvision" && m.Folder != "modelsmodels" || session.CheckSubPath(m.Path) != "" ||
				session.CheckMounts([]session.Mount{{Folder: m.Name, Target: m.Target}}) != nil {
				t.Errorf("%q mounts %+v", text, m)
			}
		}
		if runs := strings.Count(plan.Dockerfile, "\nRUN "); runs != strings.Count(plan.Dockerfile, "./install.sh\n") {
			t.Errorf("%q runs %d commands:\n%s", text, runs, plan.Dockerfile)
		}
	})
}

func TestTheSecretsOfADockerfileAreListed(t *testing.T) {
	plan := read(t, tree("Dockerfile", `# RUN --mount=type=secret,id=COMMENT true
FROM a:1
ARG X=--mount=type=secret,id=ARG
RUN --mount=type=cache,target=/c --mount=type=secret,id=FIRST,required=true \
    # between
    --mount=type=secret,target=/run/SECOND \

    --network=none pip install --mount=type=secret,id=COMMAND
run --mount=target=/x/THIRD.txt,ID="THIRD",type=secret true
RUN --mount=type=secret,id=FIRST --mount=type=ssh,id=SSH --mount=type=secret,id=npm.rc true
RUN --mount=type=secret,id=SLIPWAY_X --mount=type=secret true
RUN echo \`+"\n"+`# not read: the last line is continued`))
	if want := []string{"FIRST", "SECOND", "THIRD"}; !slices.Equal(plan.Secrets, want) {
		t.Errorf("the secrets are %q, want %q", plan.Secrets, want)
	}
	var left []string
	for _, one := range plan.Left {
		left = append(left, one.What)
	}
	if want := []string{"npm.rc", "SLIPWAY_X"}; !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
	if none := read(t, tree("requirements.txt", "a")).Secrets; len(none) > 0 {
		t.Errorf("a list of packages has the secrets %q", none)
	}
}

func TestAnArgumentForAProxyIsFound(t *testing.T) {
	for lines, want := range map[string]bool{
		"ARG HTTP_PROXY": true, "arg VERSION=1 \\\n  https_proxy=http://a": true, "ARG HTTP_PROXY=http://a": true,
		"ARG VERSION=HTTP_PROXY": false, "ENV HTTP_PROXY=": false, "RUN echo ARG HTTP_PROXY": false, "ARG": false,
		"# ARG HTTP_PROXY": false,
	} {
		if got := read(t, tree("Dockerfile", "FROM a\n"+lines+"\n")).DeclaresProxy(); got != want {
			t.Errorf("%q has one: %t", lines, got)
		}
	}
}
