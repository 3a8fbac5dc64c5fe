package payload_test

import (
	"bytes"
	"debug/elf"
	"strings"
	"testing"

	"slipway/backend/guest/payload"
)

// limit keeps the guest small: it is copied to every machine and mapped into
// every container.
const limit = 7_100_000

func TestBinary(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		data, err := payload.Binary(arch)
		if err != nil { // a checkout that was not built
			if !strings.Contains(err.Error(), "make guest") {
				t.Errorf("%s: %v", arch, err)
			}
			continue
		}
		program, err := elf.NewFile(bytes.NewReader(data))
		if err != nil || program.Machine != machine {
			t.Errorf("%s: %v", arch, err)
			continue
		}
		if libraries, err := program.ImportedLibraries(); err != nil || len(libraries) > 0 ||
			program.Section(".interp") != nil {
			t.Errorf("%s is not static: %v, %v", arch, libraries, err)
		}
		if len(data) > limit {
			t.Errorf("%s has %d bytes, more than %d", arch, len(data), limit)
		}
	}
	if _, err := payload.Binary("vax"); err == nil || !strings.Contains(err.Error(), "make guest") {
		t.Errorf("an unknown machine: %v", err)
	}
}
