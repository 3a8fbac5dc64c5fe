package launch

import (
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/agent/host"
	"slipway/backend/agent/records"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// TestKeysAreReadByOpenSSH has the program itself read a key.
func TestKeysAreReadByOpenSSH(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	books, openErr := store.Open(store.Config{Path: filepath.Join(t.TempDir(), "agent.db")})
	if openErr != nil {
		t.Fatal(openErr)
	}
	defer books.Close()
	r := &Runner{config: Config{Host: host.Host{Records: records.New(records.Config{Store: books})}}}
	key := r.sshKey("user", "abc", "1")
	if again := r.sshKey("user", "abc", "1"); again != key {
		t.Error("the same purpose gives another key")
	}
	if other := r.sshKey("user", "abc", "2"); other == key {
		t.Error("another purpose gives the same key")
	}
	if block, rest := pem.Decode([]byte(key)); block == nil || block.Type != "OPENSSH PRIVATE KEY" || len(rest) > 0 {
		t.Errorf("the key is %q", key)
	}
	if err != nil {
		return // nothing here reads it
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(keygen, "-y", "-P", "", "-f", path).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "ssh-ed25519 ") {
		t.Errorf("ssh-keygen says %s, %v", out, err)
	}
}

func TestFrameworksAreToldToKeepToTheirShare(t *testing.T) {
	devices := []gpu.Device{{UUID: "a", Memory: 80 * gpu.GiB}, {UUID: "b", Memory: 24 * gpu.GiB}}
	for name, test := range map[string]struct {
		grants        []gpu.Grant
		uncooperative bool
		fraction, jax string
		limit         string
	}{
		"half of a device, less a context": {grants: []gpu.Grant{{Device: "a", Share: 500, Memory: 40 * gpu.GiB}},
			fraction: "0.493", jax: "0.493", limit: "40960"},
		"a small share, less a quarter": {grants: []gpu.Grant{{Device: "b", Share: 10, Memory: gpu.GiB}},
			fraction: "0.031", jax: "0.031", limit: "1024"},
		"the smaller of two parts": {grants: []gpu.Grant{{Device: "a", Share: 800, Memory: 64 * gpu.GiB},
			{Device: "b", Share: 700, Memory: 16 * gpu.GiB}}, fraction: "0.645", jax: "0.645", limit: "16384"},
		"who does not want it": {grants: []gpu.Grant{{Device: "a", Share: 500, Memory: 40 * gpu.GiB}},
			uncooperative: true, fraction: "0.493", limit: "40960"},
		"a whole device": {grants: []gpu.Grant{{Device: "a", Share: 1000, Memory: 78 * gpu.GiB,
			Whole: true}}, fraction: "0.975", limit: "79872"},
		"a MIG instance": {
			grants: []gpu.Grant{{Device: "a", Instance: "MIG-1", Share: 142, Memory: 10 * gpu.GiB}}, fraction: "1.000",
			limit: "10240"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := session.Spec{Tuning: session.Tuning{Uncooperative: test.uncooperative}}
			env := deviceEnv(session.Session{Spec: spec}, devices, test.grants)
			if valueOf(env, "SLIPWAY_GPU_FRACTION") != test.fraction ||
				valueOf(env, "XLA_PYTHON_CLIENT_MEM_FRACTION") != test.jax ||
				valueOf(env, "GPU_MEMORY_LIMIT_MIB") != test.limit {
				t.Errorf("%v", env)
			}
		})
	}
}

func valueOf(env []session.EnvVar, name string) string {
	for _, v := range env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}
