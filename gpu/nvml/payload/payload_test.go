package payload

import (
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheReaderIsWrittenOnceAndOlderOnesGo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gpu")
	first, err := extract(dir, []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(first)
	if err != nil || before.Mode().Perm() != 0o700 {
		t.Fatalf("%v, %v", before, err)
	}
	if again, err := extract(dir, []byte("one")); err != nil || again != first {
		t.Errorf("%s, %v", again, err)
	}
	if after, err := os.Stat(first); err != nil || !os.SameFile(before, after) {
		t.Errorf("it was written again: %v", err)
	}
	second, err := extract(dir, []byte("two"))
	if err != nil || second == first {
		t.Errorf("%s, %v", second, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
}

func TestADamagedReaderIsReplaced(t *testing.T) {
	dir := t.TempDir()
	path, err := extract(dir, []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("onc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := extract(dir, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "one" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestAFolderThatCannotBeWrittenIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := extract(filepath.Join(file, "gpu"), []byte("one")); err == nil {
		t.Error("it was written")
	}
}

// TestTheReaderBindsLate holds what was built to finding the driver's functions
// one by one: with all of them bound at its start it would not start on any
// driver that lacks one.
func TestTheReaderBindsLate(t *testing.T) {
	path, err := Extract(t.TempDir())
	if err != nil {
		if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "make build") {
			t.Error(err)
		}
		return
	}
	program, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	now, err := program.DynValue(elf.DT_FLAGS)
	if err != nil || slices.ContainsFunc(now, func(f uint64) bool { return elf.DynFlag(f)&elf.DF_BIND_NOW != 0 }) {
		t.Errorf("it binds at its start: %v, %v", now, err)
	}
	libraries, err := program.ImportedLibraries()
	if err != nil || slices.ContainsFunc(libraries, func(l string) bool { return strings.Contains(l, "nvidia") }) {
		t.Errorf("it needs %v: %v", libraries, err)
	}
}
