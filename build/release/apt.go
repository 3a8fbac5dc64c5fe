package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// makeApt indexes the packages in the directory pool for apt, as the suite stable.
func makeApt(dir string, at time.Time, key string) error {
	packages, err := indexes(dir)
	if err != nil || len(packages) == 0 {
		return err
	}
	suite := filepath.Join(dir, "dists", "stable")
	if err := os.RemoveAll(suite); err != nil {
		return err
	}
	archs := slices.Sorted(maps.Keys(packages))
	var release strings.Builder
	fmt.Fprintf(&release, "Origin: Slipway\nLabel: Slipway\nSuite: stable\nCodename: stable\nDate: %s\n"+
		"Architectures: %s\nComponents: main\nSHA256:\n", at.UTC().Format("Mon, 02 Jan 2006 15:04:05 UTC"),
		strings.Join(archs, " "))
	for _, arch := range archs {
		folder := "main/binary-" + arch
		if err := os.MkdirAll(filepath.Join(suite, folder), 0o755); err != nil {
			return err
		}
		text := packages[arch].Bytes()
		for _, file := range []struct {
			name string
			data []byte
		}{{"Packages", text}, {"Packages.gz", zipped(text)}} {
			name := folder + "/" + file.name
			if err := os.WriteFile(filepath.Join(suite, name), file.data, 0o644); err != nil {
				return err
			}
			fmt.Fprintf(&release, " %x %d %s\n", sha256.Sum256(file.data), len(file.data), name)
		}
	}
	if err := os.WriteFile(filepath.Join(suite, "Release"), []byte(release.String()), 0o644); err != nil {
		return err
	}
	return sign(suite, key, "Release", signature{"InRelease", "--clear-sign"},
		signature{"Release.gpg", "--detach-sign"})
}

// indexes returns the list of packages for each architecture.
func indexes(dir string) (map[string]*bytes.Buffer, error) {
	debs, err := filepath.Glob(filepath.Join(dir, "pool", "*.deb"))
	if err != nil {
		return nil, err
	}
	found := map[string]*bytes.Buffer{}
	for _, deb := range debs {
		control, err := output(dir, "", "dpkg-deb", "--field", deb)
		if err != nil {
			return nil, err
		}
		_, rest, ok := strings.Cut("\n"+control, "\nArchitecture: ")
		arch, _, _ := strings.Cut(rest, "\n")
		if !ok {
			return nil, fmt.Errorf("%s has no architecture", deb)
		}
		data, err := os.ReadFile(deb)
		if err != nil {
			return nil, err
		}
		if found[arch] == nil {
			found[arch] = &bytes.Buffer{}
		}
		fmt.Fprintf(found[arch], "%s\nFilename: pool/%s\nSize: %d\nSHA256: %x\n\n", strings.TrimSpace(control),
			filepath.Base(deb), len(data), sha256.Sum256(data))
	}
	return found, nil
}

// zipped packs text, always into the same bytes.
func zipped(text []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // a level that there is
	_, _ = w.Write(text)                                  // into a buffer
	_ = w.Close()
	return b.Bytes()
}
