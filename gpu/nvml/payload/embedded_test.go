package payload

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestOnlyProgramsForLinuxCarryTheReader compiles nothing: go list knows what each platform would embed.
func TestOnlyProgramsForLinuxCarryTheReader(t *testing.T) {
	for _, one := range []struct{ system, arch, embeds string }{
		{"linux", "amd64", "[bin/*-amd64]"}, {"linux", "arm64", "[bin/*-arm64]"}, {"linux", "riscv64", "[]"},
		{"windows", "amd64", "[]"}, {"windows", "arm64", "[]"}, {"darwin", "amd64", "[]"}, {"darwin", "arm64", "[]"},
	} {
		list := exec.Command("go", "list", "-f", "{{.EmbedPatterns}}", ".")
		list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+one.system, "GOARCH="+one.arch)
		if out, err := list.Output(); err != nil || strings.TrimSpace(string(out)) != one.embeds {
			t.Errorf("%s/%s embeds %q, %v", one.system, one.arch, out, err)
		}
	}
}
