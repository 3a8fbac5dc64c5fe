package project

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"slipway/backend/session"
)

// Files of repo2docker that install nothing decide, too, so that what they ask for is done or named.
func TestFilesOfRepo2dockerThatInstallNothing(t *testing.T) {
	const (
		begins  = "#!/bin/bash -l\nexport A=1\nexec \"$@\"\n"
		run     = "set -e\ncd /home/work/vision\necho start\n"
		version = "runtime.txt projectRuntime"
		exports = "start projectStartExports"
	)
	for name, c := range map[string]struct {
		files       fstest.MapFS
		environment string
		setup, left string
	}{
		"another version":   {tree("runtime.txt", "python-3.9.1\n"), "a:1", "", version},
		"a version of R":    {tree("runtime.txt", "r-4.1-2022-01-01"), "python:3.12", "", version},
		"a shorter one":     {tree("runtime.txt", "python-3.1"), "python:3.12", "", version},
		"that of the image": {tree("runtime.txt", "python-3.12.4\r\n"), "python:3.12-slim", "", ""},
		"that of its tag":   {tree("runtime.txt", "python-3.12"), "quay.io/jupyter/a:python-3.12", "", ""},
		"any Python 3":      {tree("runtime.txt", "python-3"), "python:3.12", "", ""},
		"nothing":           {tree("runtime.txt", "\n"), "a:1", "", ""},
		"a start":           {tree("start", begins), "a:1", run + "/bin/bash -l ./start true\n", exports},
		"a start of binder": {tree("binder/start", begins), "a:1",
			run + "/bin/bash -l ./binder/start true\n", exports},
		"a start without #!": {tree("start", "exec $@"), "a:1", run + "sh ./start true\n", exports},
		"a start with options": {tree("start", "#! /usr/bin/env  -S a '\nexec \"${@}\""), "a:1",
			run + `/usr/bin/env '-S a '\''' ./start true` + "\n", exports},
		"another start": {tree("start", "#!/bin/sh\n# exec \"$@\"\nserve\n"), "a:1", "", "start projectStart"},
		"a program":     {tree("start", "\x7fELF\x00"), "a:1", "", "start projectStart"},
	} {
		plan, err := Read(t.Context(), c.files, vision, session.ProjectRequest{Environment: c.environment})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if plan.Kind != session.ProjectPackages || plan.Dockerfile != "" || plan.Generated ||
			plan.Image != c.environment || len(plan.Files) != 1 || plan.File != plan.Files[0] {
			t.Errorf("%s is %+v", name, plan.Project)
		}
		if got := strings.Join(leftOf(plan), "; "); plan.Setup != c.setup || got != c.left {
			t.Errorf("%s runs\n%s\nand leaves %q, want\n%s\nand %q", name, plan.Setup, got, c.setup, c.left)
		}
	}
	plan := read(t, tree("requirements.txt", "a", "start", begins, "runtime.txt", "python-3.9"))
	if plan.File != "requirements.txt" || !strings.Contains(plan.Dockerfile, "pip") || plan.Setup == "" ||
		len(plan.Left) != 2 || !strings.Contains(plan.Left[0].Why.English(), "Python 3.9.") {
		t.Errorf("beside packages they are %+v", plan.Project)
	}
}

func TestAStartRunsWithoutPermissionToRun(t *testing.T) {
	const text = "#!/bin/sh -e\necho \"$#\" >ran\nexec \"$@\"\n"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "start"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	plan := read(t, tree("start", text))
	script := strings.Replace(plan.Setup, plan.workspace, dir, 1)
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); string(out) != "start\n" || err != nil {
		t.Errorf("%s\nprinted %q, %v", script, out, err)
	}
	if ran, err := os.ReadFile(filepath.Join(dir, "ran")); string(ran) != "1\n" || err != nil {
		t.Errorf("it has left %q, %v", ran, err)
	}
}
