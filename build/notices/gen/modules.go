package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// programs are what is built, and for which platforms. That of the window needs a C compiler to build, not to list.
var programs = []struct{ goos, tags, path string }{
	{"linux", "desktop,production,webkit2_41", "."},
	{"linux", "", "./backend/guest/slipway-guest"},
	{"linux", "", "./gpu/nvml/slipway-gpu"},
	{"windows", "desktop,production", "."},
	{"darwin", "", "."},
}

// goModules returns the modules of which a package is in one of the programs, and Go's own library.
func goModules(root string) ([]work, error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	text, err := passedOn(strings.TrimSpace(string(goroot)))
	if err != nil {
		return nil, err
	}
	// Its version is left out, because any later one builds the programs as well.
	works := []work{{name: "Go", version: "standard library", license: identify(text),
		source: "https://go.dev/dl/", text: text}}
	for _, p := range programs {
		cmd := exec.Command("go", "list", "-deps", "-tags", p.tags, "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}", p.path)
		cmd.Dir, cmd.Stderr = root, os.Stderr
		cmd.Env = append(os.Environ(), "GOOS="+p.goos, "GOARCH=amd64", "CGO_ENABLED=1", "GOFLAGS=")
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", p.goos, err)
		}
		for line := range strings.Lines(string(out)) {
			parts := strings.Split(strings.TrimSpace(line), "\t")
			if len(parts) != 3 {
				continue
			}
			w, err := module(parts[0], parts[1], parts[2])
			if err != nil {
				return nil, err
			}
			works = append(works, w)
		}
	}
	return works, nil
}

func module(path, version, dir string) (work, error) {
	text, err := passedOn(dir)
	if text == "" && err == nil {
		// The module may be a directory of a repository that has its licence above it.
		text, err = passedOn(filepath.Dir(dir))
	}
	return work{name: path, version: version, license: identify(text),
		source: "https://pkg.go.dev/" + path + "@" + version, text: text}, err
}

// readme returns the part of a README that begins with the licence, for packages that have it nowhere else.
func readme(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if at := bytes.LastIndex(text, []byte("\n## License")); at >= 0 && err == nil {
		return string(text[at+1:]), nil
	}
	return "", err
}
