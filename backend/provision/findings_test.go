package provision

import (
	"context"
	"crypto/sha256"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
	"slipway/tunnel/sshstdio"
)

// cancelled is a remote whose caller has given up.
type cancelled struct{}

func (cancelled) Run(ctx context.Context, _ []string, _ io.Reader) (sshstdio.Result, error) {
	return sshstdio.Result{}, ctx.Err()
}
func (cancelled) Upload(ctx context.Context, _ io.Reader, _ string, _ fs.FileMode, _ [sha256.Size]byte) error {
	return ctx.Err()
}

var noon = time.Unix(1_900_000_000, 0)

const server = `slipway-probe 1
os=Linux
arch=aarch64
kernel=6.1.0
host=lab
uid=1000
user=ada
now=1900000060
home=/home/ada
dir=/home/ada/.local/share/slipway
disk=1000000 500000
folder=ok
gzip=yes
docker=unix:///var/run/docker.sock
socket=open
engine=27.1.2|true|2|io.containerd.runc.v2,nvidia,runc,
cgroup=2
nvidia=580.105.08
toolkit=1.18.0
gpu=NVIDIA A100
gpu=NVIDIA A100
systemd=yes
linger=yes
killing=b false
installed={"version":"0.1.0","commit":"abc","os":"linux","arch":"arm64"}
running={"role":"agent","pid":7,"version":"0.1.0","live":3}
held=slipway-0.1.0-0011223344556677
slipway-probe end
`

func TestProbeIsRead(t *testing.T) {
	f, err := parse([]byte(server), noon)
	if err != nil {
		t.Fatal(err)
	}
	if f.Arch != "arm64" || f.OS != "linux" || f.Clock != time.Minute || f.DiskFree != 500_000*gpu.KiB ||
		!*f.LiveRestore || f.Docker != "27.1.2" ||
		!slices.Contains(f.Runtimes, "nvidia") || len(f.GPUs) != 2 || !f.Linger || f.Killing || f.Running.Live != 3 ||
		f.Installed.Version != "0.1.0" || len(f.Held) != 1 {
		t.Errorf("%+v", f)
	}
	if f.Err() != nil {
		t.Errorf("it is refused: %v", f.Err())
	}
}

func TestALoginNodeOfSlurmNeedsNoDocker(t *testing.T) {
	without := strings.NewReplacer("socket=open", "socket=missing",
		"engine=27.1.2|true|2|io.containerd.runc.v2,nvidia,runc,", "slurm=22.05.8").Replace(server)
	f, err := parse([]byte(without), noon)
	if err != nil || f.Err() != nil {
		t.Fatalf("%v, %v", err, f.Err())
	}
	var ids []string
	for _, check := range f.Checks() {
		ids = append(ids, check.ID)
	}
	if want := []string{"system", "folder", "disk", "slurm", "keeper", "clock"}; !slices.Equal(ids, want) {
		t.Errorf("the checks are %q, want %q", ids, want)
	}
	f.Socket = SocketOpen // which an agent uses first
	if checks := f.Checks(); !slices.ContainsFunc(checks, func(c session.Check) bool { return c.ID == "docker" }) {
		t.Errorf("with Docker: %+v", checks)
	}
}

func TestAnAddressOfSlurmNeedsSlurm(t *testing.T) {
	f, err := parse([]byte(server), noon) // with Docker
	if err != nil {
		t.Fatal(err)
	}
	f.Slurm.Wanted = true
	if refused := f.Err(); session.CodeOf(refused) != session.CodeInstallFailed ||
		!strings.Contains(refused.Error(), "sbatch") {
		t.Errorf("without Slurm: %v", refused)
	}
	f.Slurm.Here = true
	if checks := f.Checks(); f.Err() != nil ||
		slices.ContainsFunc(checks, func(c session.Check) bool { return c.ID == "docker" }) {
		t.Errorf("with Slurm: %v, %+v", f.Err(), checks)
	}
}

func TestProbeIsReadStrictly(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                 "",
		"noise before it":         "Welcome\n" + server,
		"something after it":      server + "more\n",
		"half of it":              server[:len(server)/2],
		"an unknown fact":         strings.Replace(server, "uid=", "gid=", 1),
		"a fact twice":            strings.Replace(server, "uid=1000", "uid=1000\nuid=0", 1),
		"a fact missing":          strings.Replace(server, "uid=1000\n", "", 1),
		"a line of no fact":       strings.Replace(server, "uid=1000", "uid", 1),
		"an escape":               strings.Replace(server, "host=lab", "host=\x1b[2J", 1),
		"a path that climbs":      strings.Replace(server, "dir=/home/ada", "dir=/home/../ada", 1),
		"a path that is relative": strings.Replace(server, "dir=/home/ada", "dir=home/ada", 1),
		"an amount below nothing": strings.Replace(server, "disk=1000000", "disk=-1", 1),
		"an amount beyond all":    strings.Replace(server, "disk=1000000", "disk=99999999999999999999", 1),
		"a state that is none":    strings.Replace(server, "socket=open", "socket=ajar", 1),
		"JSON that is none":       strings.Replace(server, `running={"role"`, `running={role`, 1),
		"more than any probe says": strings.Replace(server, "gpu=NVIDIA A100\n",
			strings.Repeat("gpu=NVIDIA A100\n", 10_000), 1),
		"a fact longer than allowed": strings.Replace(server, "host=lab", "host="+strings.Repeat("x", factMost+1), 1),
	} {
		if _, err := parse([]byte(text), noon); session.CodeOf(err) != "agent_install_failed" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEveryFaultHasACauseAndARemedy(t *testing.T) {
	no := false
	for name, c := range map[string]struct {
		change func(*Findings)
		id     string
		code   session.Code // empty: a warning
	}{
		"macOS": {func(f *Findings) { f.OS = "darwin" }, "system", "agent_install_failed"},
		"a strange processor": {func(f *Findings) { f.Arch = "riscv64" }, "system",
			"agent_install_failed"},
		"noexec":         {func(f *Findings) { f.Folder = FolderNoexec }, "folder", "agent_install_failed"},
		"read-only":      {func(f *Findings) { f.Folder = FolderReadonly }, "folder", "agent_install_failed"},
		"a full disk":    {func(f *Findings) { f.DiskFree = gpu.MiB }, "disk", "disk_write_no-space"},
		"little room":    {func(f *Findings) { f.DiskFree = gpu.GiB }, "disk", ""},
		"no Docker":      {func(f *Findings) { f.Socket = SocketMissing }, "docker", "agent_install_failed"},
		"Docker stopped": {func(f *Findings) { f.Socket = SocketStopped }, "docker", "agent_install_failed"},
		"not in the group": {func(f *Findings) { f.Socket = SocketForbidden }, "docker",
			"agent_install_failed"},
		"Docker elsewhere": {func(f *Findings) { f.Socket = SocketRemote }, "docker", "agent_install_failed"},
		"an old Docker":    {func(f *Findings) { f.Docker = "19.03.1" }, "docker", "agent_install_failed"},
		"no version":       {func(f *Findings) { f.Docker = "" }, "docker", ""},
		"no live-restore":  {func(f *Findings) { f.LiveRestore = &no }, "live-restore", ""},
		"cgroup v1":        {func(f *Findings) { f.Cgroup = 1 }, "cgroup", ""},
		"no driver":        {func(f *Findings) { f.NVIDIA = "" }, "devices", ""},
		"no toolkit":       {func(f *Findings) { f.Toolkit, f.Runtimes = "", nil }, "devices", ""},
		"processes end":    {func(f *Findings) { f.Linger, f.Killing = false, true }, "keeper", ""},
		"a clock behind":   {func(f *Findings) { f.Clock = -time.Hour }, "clock", ""},
	} {
		f, err := parse([]byte(server), noon)
		if err != nil {
			t.Fatal(err)
		}
		f.Clock, f.DiskFree, f.DiskTotal = 0, 100*gpu.GiB, 200*gpu.GiB
		for _, check := range f.Checks() {
			if check.Result != session.CheckOK {
				t.Fatalf("a good machine: %+v", check)
			}
		}
		c.change(&f)
		for _, check := range f.Checks() {
			if bad := check.Result != session.CheckOK; bad != (check.ID == c.id) || bad &&
				(check.Text == "" || check.Remedy == "") {
				t.Errorf("%s: %+v", name, check)
			}
		}
		if code := session.CodeOf(f.Err()); code != c.code {
			t.Errorf("%s is %q", name, code)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(server))
	f.Add([]byte("slipway-probe 1\nslipway-probe end\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		found, err := parse(out, noon)
		if err != nil {
			if session.AsError(err, "").Hint == "" {
				t.Errorf("no hint: %v", err)
			}
			return
		}
		if !strings.HasPrefix(found.Dir, "/") || strings.Contains(found.Dir+"/", "/../") || found.DiskFree < 0 ||
			len(found.GPUs) > listMost || len(found.Held) > listMost {
			t.Errorf("%+v", found)
		}
		for _, check := range found.Checks() {
			if check.Text == "" || check.Result == session.CheckFailed && check.Remedy == "" {
				t.Errorf("%+v", check)
			}
		}
	})
}
