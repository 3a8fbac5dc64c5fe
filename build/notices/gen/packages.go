package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// npmPackages returns the packages that the pages may have something of: those of the lock file that are not for
// development only.
func npmPackages(root string) ([]work, error) {
	var lock struct {
		Packages map[string]struct {
			Version  string `json:"version"`
			License  string `json:"license"`
			Dev      bool   `json:"dev"`
			Optional bool   `json:"optional"`
		} `json:"packages"`
	}
	frontend := filepath.Join(root, "frontend")
	data, err := os.ReadFile(filepath.Join(frontend, "package-lock.json"))
	if err == nil {
		err = json.Unmarshal(data, &lock)
	}
	if err != nil {
		return nil, err
	}
	var works []work
	for path, p := range lock.Packages {
		if path == "" || p.Dev || p.Optional {
			continue
		}
		name := path[strings.LastIndex(path, "node_modules/")+len("node_modules/"):]
		text, err := npmText(root, filepath.Join(frontend, path), name, p.License)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		works = append(works, work{name: name, version: p.Version, license: p.License,
			source: "https://www.npmjs.com/package/" + name + "/v/" + p.Version, text: text})
	}
	return works, nil
}

// npmText returns the licence of a package: its own file, one of build/notices/texts, or what its README says.
func npmText(root, dir, name, license string) (string, error) {
	text, err := passedOn(dir)
	if text != "" || err != nil {
		return text, err
	}
	ours, err := os.ReadFile(filepath.Join(root, "build/notices/texts", strings.ReplaceAll(name, "/", "-")+".txt"))
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return string(ours), err
	}
	if text, err = readme(dir); err == nil && identify(text) != license {
		return "", fmt.Errorf("no licence was found; put its text into build/notices/texts (%s)", license)
	}
	return text, err
}
