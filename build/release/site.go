package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"slipway/backend/updates"
)

// makeSite adds the packages of the release in root to a site: downloads, repositories for apt and for dnf, and what
// the check for updates reads. Packages of earlier releases stay in the repositories.
func makeSite(root, site, key string) error {
	version, err := versionOf(root)
	if err != nil {
		return err
	}
	s, err := sectionOf(root, version)
	if err != nil {
		return fmt.Errorf("%w: make the release first, with cut", err)
	}
	at, err := time.Parse(time.DateOnly, s.date)
	if err != nil {
		return err
	}
	packages := filepath.Join(root, "build/bin/packages")
	if err := os.RemoveAll(filepath.Join(site, "files")); err != nil {
		return err
	}
	for _, to := range []struct{ dir, pattern string }{{"files", "*"}, {"apt/pool", "*.deb"}, {"rpm", "*.rpm"}} {
		if err := copyFiles(packages, to.pattern, filepath.Join(site, to.dir), at); err != nil {
			return err
		}
	}
	if err := makeApt(filepath.Join(site, "apt"), at, key); err != nil {
		return err
	}
	if err := makeRPM(filepath.Join(site, "rpm"), at, key); err != nil {
		return err
	}
	if key != "" {
		if err := gpg(site, "slipway.asc", "--export", key); err != nil {
			return err
		}
	}
	return writeLatest(filepath.Join(site, "latest.json"),
		updates.Release{Version: version, Date: s.date, Notes: s.notes})
}

// writeLatest writes what programs read that are older, as they would read it.
func writeLatest(path string, release updates.Release) error {
	data, err := json.MarshalIndent(release, "", "  ")
	if err != nil {
		return err
	}
	if read, err := updates.Parse(data); err != nil || read != release {
		return fmt.Errorf("older programs would not read %s: %+v, %w", path, read, err)
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// copyFiles copies the files of a directory that match a pattern. All get one time, because indexes have it.
func copyFiles(from, pattern, to string, at time.Time) error {
	found, err := filepath.Glob(filepath.Join(from, pattern))
	if err == nil && len(found) == 0 && pattern == "*" {
		err = fmt.Errorf("%s is empty: run make package", from)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, name := range found {
		path := filepath.Join(to, filepath.Base(name))
		if err := errors.Join(copyFile(name, path), os.Chtimes(path, at, at)); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// makeRPM indexes the packages in a directory for dnf and zypper.
func makeRPM(dir string, at time.Time, key string) error {
	if found, err := filepath.Glob(filepath.Join(dir, "*.rpm")); err != nil || len(found) == 0 {
		return err
	}
	if _, err := output(dir, "", "createrepo_c", "--quiet", "--no-database", "--revision",
		strconv.FormatInt(at.Unix(), 10), "--set-timestamp-to-revision", "."); err != nil {
		return fmt.Errorf("%w (createrepo_c is in createrepo-c)", err)
	}
	return sign(filepath.Join(dir, "repodata"), key, "repomd.xml", signature{"repomd.xml.asc", "--detach-sign"})
}

// signature is a file that is made with an option of gpg.
type signature struct{ name, option string }

// sign writes signatures of a file. Without a key it removes those of an earlier one.
func sign(dir, key, file string, signatures ...signature) error {
	for _, s := range signatures {
		if key == "" {
			if err := os.Remove(filepath.Join(dir, s.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			continue
		}
		if err := gpg(dir, s.name, "--local-user", key, s.option, file); err != nil {
			return err
		}
	}
	return nil
}

// gpg writes a file in a directory.
func gpg(dir, file string, args ...string) error {
	_, err := output(dir, "", "gpg", append([]string{"--batch", "--yes", "--armor", "--output", file}, args...)...)
	return err
}
