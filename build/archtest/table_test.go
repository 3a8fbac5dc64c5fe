package archtest

// module is the path of this module.
const module = "slipway"

// row says what one package may import of this module. Tests may also import
// whatever stands above their package in the table, and what tests lists.
type row struct {
	pkg     string
	imports []string
	tests   []string
}

// table is read downward: nothing imports what stands below it.
var table = []row{
	{pkg: "gpu"},
	{pkg: "gpu/clock", imports: []string{"gpu"}},
	{pkg: "gpu/procs"},
	{pkg: "gpu/nvml", imports: []string{"gpu", "gpu/clock", "gpu/procs"}},
	{pkg: "gpu/nvml/slipway-gpu", imports: []string{"gpu/nvml"}},
	{pkg: "gpu/nvml/payload"},
	{pkg: "gpu/drm", imports: []string{"gpu", "gpu/clock", "gpu/procs"}},
	{pkg: "gpu/devices", imports: []string{"gpu", "gpu/clock", "gpu/procs", "gpu/nvml", "gpu/nvml/payload", "gpu/drm"}},
	{pkg: "gpu/sim", imports: []string{"gpu"}},
	{pkg: "tunnel"},
	{pkg: "tunnel/frame"},
	{pkg: "tunnel/resume", imports: []string{"tunnel", "tunnel/frame"}},
	{pkg: "tunnel/netwatch"},
	{pkg: "tunnel/nonblock"},
	{pkg: "tunnel/cpace"},
	{pkg: "tunnel/secure", imports: []string{"tunnel", "tunnel/cpace"}},
	{pkg: "tunnel/sshstdio", imports: []string{"tunnel"}},
	{pkg: "backend/place"},
	{pkg: "backend/pace"},
	{pkg: "backend/session", imports: []string{"gpu"}},
	{pkg: "backend/vet", imports: []string{"backend/session", "gpu"}},
	{pkg: "backend/diagnose", imports: []string{"backend/session"}},
	{pkg: "backend/autostart", imports: []string{"backend/place", "backend/session"}},
	{pkg: "backend/notify", imports: []string{"backend/session"}},
	{pkg: "backend/vault", imports: []string{"backend/session"}},
	{pkg: "backend/settings", imports: []string{"backend/session"}},
	{pkg: "backend/rotate"},
	{pkg: "backend/access", imports: []string{"backend/rotate", "backend/session", "gpu"},
		tests: []string{"backend/agent", "backend/agent/simulated", "backend/hub/hubtest",
			"backend/session/agenttest"}},
	{pkg: "backend/peer"},
	{pkg: "backend/mountinfo"},
	{pkg: "backend/daemon", imports: []string{"backend/place", "backend/session", "backend/peer"}},
	{pkg: "backend/hostlock"},
	{pkg: "backend/recipe", imports: []string{"backend/session", "gpu"}},
	{pkg: "backend/runtimes", imports: []string{"backend/recipe", "backend/session"},
		tests: []string{"gpu"}},
	{pkg: "backend/scheduler", imports: []string{"backend/session", "gpu"}},
	{pkg: "backend/serving", imports: []string{"backend/session", "gpu"}},
	{pkg: "backend/idle", imports: []string{"backend/session"}},
	{pkg: "backend/prometheus"},
	{pkg: "backend/router", imports: []string{"backend/session", "tunnel/nonblock"}},
	{pkg: "backend/store", imports: []string{"backend/session", "gpu"}},
	{pkg: "backend/terminal", imports: []string{"tunnel/frame"}},
	{pkg: "backend/layers", imports: []string{"backend/session", "gpu", "tunnel/frame"}},
	{pkg: "backend/config", imports: []string{"backend/layers", "backend/session", "gpu"}},
	{pkg: "backend/session/agenttest", imports: []string{"backend/session", "backend/layers", "backend/terminal",
		"gpu"}},
	{pkg: "backend/files", imports: []string{"backend/session"}},
	{pkg: "backend/hostfs"},
	{pkg: "backend/folder", imports: []string{"backend/session", "backend/files", "backend/hostfs", "gpu"}},
	{pkg: "backend/offlimits", imports: []string{"backend/session", "backend/hostfs", "backend/mountinfo"}},
	{pkg: "backend/guest/payload"},
	{pkg: "backend/slurm", imports: []string{"backend/pace", "backend/session", "gpu"},
		tests: []string{"backend/slurm/slurmtest"}},
	{pkg: "backend/slurm/slurmtest", imports: []string{"backend/slurm"}},
	{pkg: "backend/engine/slurm/slurmtest"},
	{pkg: "backend/engine", imports: []string{"backend/session", "gpu"}},
	{pkg: "backend/guest/link", imports: []string{"backend/session", "backend/terminal", "tunnel", "tunnel/frame"},
		tests: []string{"backend/guest"}},
	{pkg: "backend/guest", imports: []string{"backend/session", "backend/engine", "backend/terminal", "tunnel",
		"backend/guest/link", "backend/files", "backend/mountinfo"}},
	{pkg: "backend/guest/node", imports: []string{"backend/session", "backend/engine", "backend/peer", "gpu"},
		tests: []string{"backend/guest/link", "backend/terminal"}},
	{pkg: "backend/guest/slipway-guest", imports: []string{"backend/guest", "backend/guest/node"}},
	{pkg: "backend/engine/enginetest", imports: []string{"backend/session", "gpu", "backend/engine",
		"backend/guest/link"}},
	{pkg: "backend/engine/docker/daemon", imports: []string{"backend/session", "gpu", "backend/engine"}},
	{pkg: "backend/engine/docker/stats", imports: []string{"gpu", "backend/engine", "backend/engine/docker/daemon"}},
	{pkg: "backend/engine/docker/networks", imports: []string{"backend/session", "backend/engine", "backend/peer",
		"backend/engine/docker/daemon"}},
	{pkg: "backend/engine/docker/images", imports: []string{"backend/session", "gpu", "backend/engine",
		"backend/engine/docker/daemon"}},
	{pkg: "backend/engine/docker/devices", imports: []string{"backend/session", "gpu", "backend/engine",
		"backend/engine/docker/daemon"}},
	{pkg: "backend/engine/docker", imports: []string{"backend/session", "gpu", "backend/engine", "backend/peer",
		"backend/engine/docker/daemon", "backend/engine/docker/devices", "backend/engine/docker/images",
		"backend/engine/docker/networks", "backend/engine/docker/stats"}},
	{pkg: "backend/engine/slurm/images", imports: []string{"backend/session", "gpu", "backend/engine",
		"backend/layers"}},
	{pkg: "backend/engine/slurm", imports: []string{"backend/scheduler", "backend/session", "gpu", "backend/engine",
		"backend/engine/slurm/images", "backend/guest/node", "backend/pace", "backend/slurm"},
		tests: []string{"backend/agent", "backend/agent/host", "backend/engine/enginetest",
			"backend/engine/slurm/slurmtest", "backend/guest/link", "backend/store", "backend/terminal"}},
	{pkg: "backend/engine/sim/llm", imports: []string{"backend/pace"}, tests: []string{"backend/prometheus"}},
	{pkg: "backend/engine/sim/shell", imports: []string{"backend/pace", "gpu", "backend/engine/sim/llm"}},
	{pkg: "backend/engine/sim/notebook", imports: []string{"backend/session", "backend/files", "backend/pace"}},
	{pkg: "backend/engine/sim", imports: []string{"backend/session", "gpu", "backend/engine", "backend/pace",
		"backend/engine/sim/shell", "backend/engine/sim/notebook", "backend/terminal",
		"backend/guest", "backend/guest/link", "backend/files"}, tests: []string{"backend/engine/enginetest"}},
	{pkg: "backend/engine/sim/simtest", imports: []string{"backend/session", "gpu", "backend/engine",
		"backend/engine/enginetest", "backend/engine/sim"}},
	{pkg: "backend/agent/doctor", imports: []string{"backend/engine", "backend/session", "gpu"}},
	{pkg: "backend/agent/confidential", imports: []string{"backend/engine", "backend/session"}},
	{pkg: "backend/agent/health", imports: []string{"backend/engine", "backend/pace", "backend/session"}},
	{pkg: "backend/agent/accounts", imports: []string{"backend/pace", "backend/session", "backend/store", "gpu"}},
	{pkg: "backend/agent/records", imports: []string{"backend/engine", "backend/pace", "backend/scheduler",
		"backend/session", "backend/store", "gpu"}},
	{pkg: "backend/agent/host", imports: []string{"backend/engine", "backend/pace", "backend/session",
		"backend/agent/health", "backend/agent/records"}},
	{pkg: "backend/agent/folders", imports: []string{"backend/engine", "backend/folder", "backend/hostfs",
		"backend/offlimits", "backend/pace", "backend/session", "backend/store", "gpu", "backend/agent/host",
		"backend/agent/records"}},
	{pkg: "backend/agent/images", imports: []string{"backend/engine", "backend/layers", "backend/pace",
		"backend/session", "backend/store", "gpu", "backend/agent/host", "backend/agent/records"}},
	{pkg: "backend/agent/meter", imports: []string{"backend/engine", "backend/pace", "backend/session", "gpu",
		"backend/agent/host"}},
	{pkg: "backend/agent/logs", imports: []string{"backend/session", "gpu", "backend/agent/host"}},
	{pkg: "backend/agent/apps", imports: []string{"backend/guest/link", "backend/session", "backend/terminal",
		"backend/agent/host"}},
	{pkg: "backend/agent/guests", imports: []string{"backend/engine", "backend/guest/link", "backend/pace",
		"backend/session", "backend/agent/host"}},
	{pkg: "backend/agent/reclaim", imports: []string{"backend/guest/link", "backend/idle", "backend/pace",
		"backend/session", "backend/terminal", "gpu", "backend/agent/accounts", "backend/agent/host",
		"backend/agent/records"}},
	{pkg: "backend/agent/devices", imports: []string{"backend/engine", "backend/pace", "backend/session",
		"backend/store", "gpu", "backend/agent/accounts", "backend/agent/host", "backend/agent/records"}},
	{pkg: "backend/agent/ledger", imports: []string{"backend/engine", "backend/pace", "backend/scheduler",
		"backend/session", "gpu", "backend/agent/accounts", "backend/agent/devices", "backend/agent/host"}},
	{pkg: "backend/agent/launch", imports: []string{"backend/engine", "backend/pace", "backend/scheduler",
		"backend/session", "backend/store", "gpu", "backend/agent/devices", "backend/agent/folders",
		"backend/agent/guests", "backend/agent/host", "backend/agent/images", "backend/agent/ledger",
		"backend/agent/logs", "backend/agent/records"}},
	{pkg: "backend/agent/queue", imports: []string{"backend/engine", "backend/pace", "backend/scheduler",
		"backend/session", "backend/store", "gpu", "backend/agent/devices", "backend/agent/host",
		"backend/agent/launch", "backend/agent/ledger", "backend/agent/records"}},
	{pkg: "backend/agent/people", imports: []string{"backend/offlimits", "backend/scheduler", "backend/session",
		"backend/store", "gpu", "backend/agent/devices", "backend/agent/folders", "backend/agent/host",
		"backend/agent/queue", "backend/agent/records"}},
	{pkg: "backend/agent/sessions", imports: []string{"backend/session", "backend/store", "gpu",
		"backend/agent/folders", "backend/agent/host", "backend/agent/images", "backend/agent/launch",
		"backend/agent/people", "backend/agent/queue", "backend/agent/reclaim", "backend/agent/records"}},
	{pkg: "backend/agent/listeners", imports: []string{"backend/pace", "backend/session", "backend/store"}},
	{pkg: "backend/agent/scrape", imports: []string{"backend/pace", "backend/prometheus", "backend/session"}},
	{pkg: "backend/agent/services", imports: []string{"backend/router", "backend/serving", "backend/session",
		"backend/store", "gpu", "backend/agent/accounts", "backend/agent/host", "backend/agent/scrape"}},
	{pkg: "backend/agent", imports: []string{"backend/engine", "backend/hostfs", "backend/layers",
		"backend/offlimits", "backend/pace", "backend/scheduler", "backend/session", "backend/store",
		"backend/terminal", "gpu", "backend/agent/accounts", "backend/agent/apps", "backend/agent/confidential",
		"backend/agent/devices", "backend/agent/doctor", "backend/agent/folders", "backend/agent/guests",
		"backend/agent/health", "backend/agent/host", "backend/agent/images", "backend/agent/launch",
		"backend/agent/ledger", "backend/agent/listeners",
		"backend/agent/logs", "backend/agent/meter", "backend/agent/people", "backend/agent/queue",
		"backend/agent/reclaim", "backend/agent/records", "backend/agent/services", "backend/agent/sessions"}},
	{pkg: "backend/agent/simulated", imports: []string{"backend/agent", "backend/engine", "backend/engine/sim",
		"backend/hostfs", "backend/store"}},
	{pkg: "backend/agentrpc", imports: []string{"backend/session", "backend/vet", "gpu", "tunnel", "tunnel/frame",
		"tunnel/resume"}},
	{pkg: "backend/agentserver", imports: []string{"backend/access", "backend/agentrpc", "backend/daemon",
		"backend/place", "backend/session", "tunnel", "tunnel/secure"}},
	{pkg: "backend/demo", imports: []string{"backend/agent/meter", "backend/engine", "backend/engine/sim",
		"backend/pace", "backend/place", "backend/session", "backend/store", "gpu", "gpu/sim", "tunnel"},
		tests: []string{"backend/recipe"}},
	{pkg: "backend/local", imports: []string{"backend/agent", "backend/agent/doctor", "backend/agent/host",
		"backend/agent/queue", "backend/config",
		"backend/demo", "backend/engine", "backend/engine/docker", "backend/engine/sim", "backend/engine/slurm",
		"backend/slurm", "backend/guest/payload",
		"backend/hostfs", "backend/hostlock",
		"backend/offlimits", "backend/pace", "backend/place", "backend/session", "backend/settings", "backend/store",
		"gpu", "gpu/clock", "gpu/devices", "gpu/procs", "gpu/sim"}},
	{pkg: "backend/provision", imports: []string{"backend/session", "backend/vet", "backend/daemon", "gpu", "tunnel",
		"tunnel/sshstdio"}},
	{pkg: "backend/hub", imports: []string{"backend/session", "backend/vet", "backend/settings", "backend/notify",
		"backend/layers", "backend/pace", "gpu"}, tests: []string{"backend/hub/hubtest", "backend/environments"}},
	{pkg: "backend/hub/hubtest", imports: []string{"backend/session", "gpu", "backend/hub"}},
	{pkg: "backend/remote", imports: []string{"backend/agentrpc", "backend/daemon", "backend/hub", "backend/pace",
		"backend/place", "backend/provision", "backend/session", "tunnel", "tunnel/netwatch", "tunnel/secure",
		"tunnel/sshstdio"}},
	{pkg: "backend/sshclient", imports: []string{"backend/session"}},
	{pkg: "backend/environments", imports: []string{"backend/session", "backend/hub", "gpu"}},
	{pkg: "backend/api", imports: []string{"backend/session", "backend/recipe", "backend/hub", "gpu"}},
	{pkg: "backend/api/route", imports: []string{"backend/api", "backend/hub", "backend/recipe", "backend/runtimes",
		"backend/session"}},
	{pkg: "backend/client", imports: []string{"backend/api/route", "backend/place", "backend/session",
		"backend/terminal"}},
	{pkg: "backend/server", imports: []string{"backend/api", "backend/api/route", "backend/pace", "backend/recipe",
		"backend/runtimes",
		"backend/session", "backend/settings", "backend/diagnose", "backend/notify", "backend/hub", "gpu",
		"backend/terminal", "backend/sshclient"}},
	{pkg: "backend/cli", imports: []string{"gpu", "backend/pace", "backend/access", "backend/api", "backend/api/route",
		"backend/client", "backend/files", "backend/hub", "backend/recipe", "backend/runtimes", "backend/place",
		"backend/terminal", "backend/daemon", "backend/session"}},
	{pkg: "backend/service", imports: []string{"backend/agentserver", "backend/api", "backend/autostart",
		"backend/daemon", "backend/demo", "backend/environments", "backend/hub", "backend/local", "backend/notify",
		"backend/place", "backend/remote", "backend/rotate", "backend/server", "backend/session", "backend/settings",
		"backend/sshclient", "backend/store", "backend/vault", "tunnel"}},
	{pkg: "backend/demo/run", imports: []string{"backend/api/route", "backend/client", "backend/daemon",
		"backend/demo", "backend/hub", "backend/local", "backend/place", "backend/server", "backend/service",
		"backend/session", "tunnel"}, tests: []string{"backend/store"}},
	{pkg: "backend", imports: []string{"backend/api", "backend/cli", "backend/demo", "backend/demo/run",
		"backend/service", "backend/session", "gpu/nvml", "tunnel/sshstdio"}},
	{pkg: "app", imports: []string{"backend", "backend/api", "backend/api/route", "backend/client",
		"backend/hub", "backend/place", "backend/session"},
		tests: []string{"backend/store"}},
	{pkg: "frontend"},
	{pkg: "frontend/notebook"},
	{pkg: "", imports: []string{"app", "backend", "frontend", "frontend/notebook"}},
	{pkg: "build/generated"},
	{pkg: "build/docgen", imports: []string{"backend/api", "backend/api/route", "backend/cli",
		"backend/settings", "build/generated"}},
	{pkg: "build/figures", imports: []string{"backend/session"}},
	{pkg: "build/rpcgen", imports: []string{"build/generated"}},
	{pkg: "build/tsgen", imports: []string{"backend/api", "backend/api/route", "backend/hub",
		"backend/runtimes", "backend/session", "gpu", "build/generated"}},
	{pkg: "build/bench/measure"},
	{pkg: "build/bench/load", imports: []string{"build/bench/measure"}},
	{pkg: "build/bench/gpuprobe", imports: []string{"gpu", "gpu/nvml", "gpu/procs", "build/bench/measure"}},
	{pkg: "build/bench", imports: []string{"backend/api", "backend/api/route", "backend/client", "backend/hub",
		"backend/place", "backend/session", "backend/terminal", "gpu", "build/bench/load", "build/bench/measure"}},
	{pkg: "build/bench/soak", imports: []string{"backend/api", "backend/api/route", "backend/client", "backend/demo",
		"backend/demo/run", "backend/hub", "backend/place", "backend/service", "backend/session",
		"backend/store", "gpu", "build/bench/measure"}},
	{pkg: "build/bench/link", imports: []string{"build/bench/measure"}},
	{pkg: "build/bench/tunnel", imports: []string{"tunnel", "build/bench/link", "build/bench/measure"}},
	{pkg: "build/archtest"},
}

// fence names the only packages that may import a third-party module, and those
// whose tests may. A module without a fence may be imported by nobody.
type fence struct {
	module string
	pkgs   []string
	tests  []string
}

// dockerRooms are the packages that speak to Docker.
var dockerRooms = []string{"backend/engine/docker", "backend/engine/docker/daemon", "backend/engine/docker/devices",
	"backend/engine/docker/images", "backend/engine/docker/networks", "backend/engine/docker/stats"}

var fences = []fence{
	{module: "github.com/docker/docker", pkgs: dockerRooms},
	{module: "github.com/docker/cli", pkgs: []string{"backend/engine/docker/images"}},
	{module: "github.com/docker/docker-credential-helpers", pkgs: []string{"backend/engine/docker/images"}},
	{module: "github.com/docker/go-connections", pkgs: []string{"backend/engine/docker"}},
	{module: "github.com/docker/go-units", pkgs: []string{"backend/engine/docker"}},
	{module: "github.com/distribution/reference", pkgs: []string{"backend/engine/docker/images"}},
	{module: "github.com/opencontainers", pkgs: []string{"backend/engine/docker"}},
	{module: "github.com/containerd/errdefs", pkgs: dockerRooms},
	{module: "golang.org/x/net/netutil", pkgs: []string{"backend/agent/listeners"}},
	{module: "github.com/moby/sys/atomicwriter", pkgs: []string{"app", "backend/agent/listeners", "backend/autostart",
		"backend/cli", "backend/daemon", "backend/demo", "backend/engine", "backend/engine/docker",
		"backend/engine/slurm",
		"backend/guest",
		"backend/layers", "backend/place", "backend/settings", "backend/sshclient", "backend/vault",
		"gpu/nvml/payload", "tunnel/secure"}},
	{module: "github.com/gofrs/flock", pkgs: []string{"backend/place", "backend/daemon"}},
	{module: "github.com/go-json-experiment/json", pkgs: []string{"backend/store", "backend/server"}},
	{module: "go.etcd.io/bbolt", pkgs: []string{"backend/store"}},
	{module: "github.com/xtaci/smux", pkgs: []string{"tunnel"}},
	{module: "github.com/wailsapp/wails/v2", pkgs: []string{"app"}},
	{module: "github.com/gtank/ristretto255", pkgs: []string{"tunnel/cpace"}},
	{module: "github.com/gorilla/websocket", pkgs: []string{"tunnel/secure", "backend/server", "backend/client",
		"backend/cli", "build/bench"}, tests: []string{"backend"}},
	{module: "github.com/shirou/gopsutil/v3", pkgs: []string{"backend/agent", "backend/agent/meter"}},
	{module: "github.com/pkg/sftp", pkgs: []string{"backend/engine/sim", "backend/guest"}},
	{module: "golang.org/x/crypto", pkgs: []string{"backend/guest", "backend/sshclient"},
		tests: []string{"backend/engine/docker", "backend/cli", "tunnel/sshstdio"}},
	{module: "github.com/klauspost/compress", pkgs: []string{"backend/layers", "backend/engine/docker/images"}},
	{module: "github.com/creack/pty", pkgs: []string{"backend/guest", "build/bench"},
		tests: []string{"backend/cli", "build/bench"}},
	{module: "golang.org/x/tools", tests: []string{"backend/scheduler"}},
	{module: "github.com/godbus/dbus/v5", pkgs: []string{"backend/notify"}},
	{module: "github.com/zalando/go-keyring", pkgs: []string{"backend/vault"}},
	{module: "github.com/spf13/cobra", pkgs: []string{"backend/cli", "build/docgen"}},
	{module: "github.com/spf13/pflag", pkgs: []string{"backend/cli", "backend/engine/sim/shell"}},
	{module: "github.com/mattn/go-runewidth", pkgs: []string{"backend/cli"}},
	{module: "github.com/NVIDIA/go-nvml", pkgs: []string{"gpu/nvml"}},
	{module: "go.yaml.in/yaml/v3", pkgs: []string{"backend/environments", "backend/recipe",
		"backend/runtimes"}},
	{module: "mvdan.cc/sh/v3", pkgs: []string{"backend/engine/sim/shell"}},
	{module: "golang.org/x/term", pkgs: []string{"backend/cli", "backend/engine/sim/shell", "backend/guest", "app",
		"build/bench"}},
	{module: "golang.org/x/sys", pkgs: []string{"backend/guest", "backend/guest/link", "backend/guest/node",
		"backend/engine/docker", "backend/engine/sim", "backend/agent/doctor", "backend/cli", "backend/client",
		"backend/peer", "backend/offlimits", "backend/daemon", "backend/hostlock", "backend", "app", "tunnel",
		"tunnel/netwatch", "build/bench/link", "gpu/clock"}},
}

// paced are the packages whose work goes by the clock of their machine, which may
// run faster than the one on the wall. wall are their files that read that one
// as well, each for something that is not the machine's.
var paced = []string{"backend/agent", "backend/agent/queue", "backend/agent/devices", "backend/agent/ledger",
	"backend/agent/launch", "backend/agent/guests", "backend/agent/accounts", "backend/agent/folders",
	"backend/agent/health", "backend/agent/images", "backend/agent/meter", "backend/agent/reclaim",
	"backend/agent/records", "backend/agent/scrape", "backend/agent/services", "backend/agent/sessions",
	"backend/engine/sim", "backend/engine/sim/shell", "backend/engine/sim/llm"}

var wall = map[string]string{
	"backend/agent/devices/devices.go":     "an agent that was given no clock",
	"backend/agent/guests/links.go":        "the pauses of links",
	"backend/agent/guests/guests.go":       "a link that is not made yet",
	"backend/agent/health/health.go":       "an engine that does not answer is asked again",
	"backend/agent/images/pull.go":         "a registry that does not answer, and how often progress is shown",
	"backend/agent/ledger/others.go":       "agents of other people",
	"backend/agent/services/plan.go":       "tokens of clients, who are elsewhere",
	"backend/engine/sim/shell/command.go":  "a read is given up",
	"backend/engine/sim/shell/terminal.go": "a write is given up",
	"backend/engine/sim/shell/files.go":    "the files are real",
}

// pure are the packages that take the time as an argument and start nothing.
var pure = []string{"backend/session", "backend/scheduler", "backend/serving", "gpu"}

// pureNot are the imports that a pure package does without. net is allowed for
// the names in pureNames only.
var pureNot = []string{"os", "os/exec", "os/signal", "os/user", "net/http", "net/rpc", "io/ioutil", "syscall", "log",
	"log/slog", "runtime", "path/filepath", "unsafe"}

// pureNames are, for packages that pure packages may name types of, the only
// names allowed.
var pureNames = map[string][]string{
	"net": {"Conn", "Addr"},
}

// pureCalls are the functions that read a clock, wait, or draw from the
// process's own randomness.
var pureCalls = map[string][]string{
	"time": {"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"},
	"rand": {"Int", "Intn", "IntN", "Int31", "Int31n", "Int32N", "Int63", "Int63n", "Int64N", "N", "Float32", "Float64",
		"Perm", "Shuffle", "Seed", "Uint32", "Uint64"},
}

// linked are the packages whose variables without a table the linker sets.
var linked = []string{"backend/place"}

// vagueNames are package names that say nothing of what a package provides.
var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "base", "core", "types", "manager", "misc",
	"shared"}

// Lengths in lines.
const (
	maxFile           = 500
	maxFrontendFile   = 300
	maxTestFile       = 700
	maxFunction       = 80
	maxFunctionInTest = 120
)
