package daemon

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/docker/docker/client"

	"slipway/backend/session"
)

type endpoint struct {
	host string
	tls  string // directory with ca.pem, cert.pem and key.pem; empty: no TLS
}

func (p endpoint) options() []client.Opt {
	options := []client.Opt{client.WithHost(p.host), client.WithVersionFromEnv(), client.WithAPIVersionNegotiation()}
	if p.tls != "" {
		file := func(name string) string { return filepath.Join(p.tls, name) }
		options = append(options, client.WithTLSClientConfig(file("ca.pem"), file("cert.pem"), file("key.pem")))
	}
	return options
}

type environment struct {
	getenv  func(string) string
	config  string   // directory of the docker command's configuration
	sockets []string // default sockets in their order
	answers func(socket string) bool
}

func hostEnvironment() environment {
	return environment{
		getenv: os.Getenv, config: ConfigDir(), sockets: defaultSockets(),
		answers: func(socket string) bool {
			conn, err := net.DialTimeout("unix", socket, time.Second)
			if err != nil {
				return false
			}
			conn.Close() //nolint:errcheck // nothing was sent
			return true
		},
	}
}

// ConfigDir is the configuration directory of the docker command.
func ConfigDir() string {
	if dir := os.Getenv("DOCKER_CONFIG"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".docker")
}

// defaultSockets are the machine's Docker, the user's rootless one and Docker Desktop, then the user's Podman and the
// machine's.
func defaultSockets() []string {
	if runtime.GOOS == "windows" {
		return nil
	}
	sockets := []string{"/var/run/docker.sock"}
	podman := []string{"/run/podman/podman.sock"}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		sockets = append(sockets, filepath.Join(dir, "docker.sock"))
		podman = []string{filepath.Join(dir, "podman/podman.sock"), podman[0]}
	}
	if home, err := os.UserHomeDir(); err == nil {
		sockets = append(sockets, filepath.Join(home, ".docker/run/docker.sock"),
			filepath.Join(home, ".docker/desktop/docker.sock"))
	}
	return append(sockets, podman...)
}

// resolveHost finds the daemon as the docker command does: host, DOCKER_HOST, the context of DOCKER_CONTEXT or of the
// configuration, then the default sockets.
func resolveHost(host string, env environment) (endpoint, error) {
	found, err := chooseHost(host, env)
	if err != nil {
		return endpoint{}, err
	}
	if strings.HasPrefix(found.host, "ssh://") {
		return endpoint{}, session.NewError(session.CodeEngineUnsupported,
			"The Docker daemon at "+found.host+" is on another machine.",
			"Run a Slipway agent on that machine, or set DOCKER_HOST to a daemon on this one.")
	}
	return found, nil
}

func chooseHost(host string, env environment) (endpoint, error) {
	tls := ""
	if env.getenv("DOCKER_TLS_VERIFY") != "" || env.getenv("DOCKER_CERT_PATH") != "" {
		tls = cmp.Or(env.getenv("DOCKER_CERT_PATH"), env.config)
	}
	if host = cmp.Or(host, env.getenv("DOCKER_HOST")); host != "" {
		return endpoint{host: host, tls: tls}, nil
	}
	name := cmp.Or(env.getenv("DOCKER_CONTEXT"), currentContext(env.config))
	if name != "" && name != "default" {
		return contextEndpoint(env.config, name)
	}
	for _, socket := range env.sockets {
		if env.answers(socket) {
			return endpoint{host: "unix://" + socket}, nil
		}
	}
	return endpoint{host: client.DefaultDockerHost}, nil // the machine's own
}

// currentContext is the context chosen with `docker context use`, or "".
func currentContext(dir string) string {
	var config struct {
		CurrentContext string `json:"currentContext"`
	}
	data, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil || json.Unmarshal(data, &config) != nil {
		return ""
	}
	return config.CurrentContext
}

// contextEndpoint reads a context. Its directory is named by the SHA-256 of its name.
func contextEndpoint(dir, name string) (endpoint, error) {
	sum := sha256.Sum256([]byte(name))
	id := hex.EncodeToString(sum[:])
	var meta struct {
		Endpoints map[string]struct{ Host string }
	}
	data, err := os.ReadFile(filepath.Join(dir, "contexts", "meta", id, "meta.json"))
	if err == nil {
		err = json.Unmarshal(data, &meta)
	}
	host := meta.Endpoints["docker"].Host
	if err != nil || host == "" {
		return endpoint{}, session.WrapError(err, session.CodeServerInvalid,
			"The Docker context "+name+" has no address.",
			"See `docker context ls`, then choose one with `docker context use`.")
	}
	tls := filepath.Join(dir, "contexts", "tls", id, "docker")
	if _, err := os.Stat(tls); err != nil {
		tls = ""
	}
	return endpoint{host: host, tls: tls}, nil
}
