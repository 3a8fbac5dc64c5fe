//go:build unix

package sshstdio

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSocketsAreKeptWhereTheyCanBeSwept(t *testing.T) {
	host, err := ParseHost("lab")
	if err != nil {
		t.Fatal(err)
	}
	short, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	deep := filepath.Join(t.TempDir(), strings.Repeat("long", 20), "ssh")
	for name, c := range map[string]struct{ folder, in string }{
		"in the folder given":                  {filepath.Join(short, "ssh"), filepath.Join(short, "ssh")},
		"elsewhere where its path is too long": {deep, os.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			open := func(folder string) *Remote {
				t.Helper()
				r, err := Open(Config{Host: host, Folder: folder})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = r.Close() })
				return r
			}
			killed, other := open(c.folder), open(c.folder+"-of-another")
			info, err := os.Stat(killed.folder)
			if err != nil || info.Mode().Perm() != 0o700 || filepath.Dir(killed.folder) != c.in ||
				len(killed.folder) > longestFolder {
				t.Fatalf("%s: %v, %v", killed.folder, info, err)
			}
			write(t, filepath.Join(killed.folder, "m12345678"), "")
			write(t, filepath.Join(c.in, "something-else"), "")
			t.Cleanup(func() { _ = os.Remove(filepath.Join(c.in, "something-else")) })
			if err := Sweep(c.folder); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(killed.folder); !os.IsNotExist(err) {
				t.Errorf("%s is still there: %v", killed.folder, err)
			}
			for _, path := range []string{other.folder, filepath.Join(c.in, "something-else")} {
				if _, err := os.Stat(path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	t.Run("nothing to sweep", func(t *testing.T) {
		if err := Sweep(filepath.Join(short, "never-made")); err != nil {
			t.Error(err)
		}
		if err := Sweep(""); err == nil {
			t.Error("everybody's temporary files were swept")
		}
	})
}
