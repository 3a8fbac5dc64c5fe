package images

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/docker/docker/api/types/registry"

	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
)

// credentials are the logins that `docker login` kept.
type credentials struct {
	dir string // of the docker command's configuration
	// ask runs a credential helper: its program and the server, which it reads
	// from its standard input.
	ask func(ctx context.Context, program, server string) ([]byte, error)
}

// loginConfig is the part of config.json about logins.
type loginConfig struct {
	Auths       map[string]loginEntry `json:"auths"`
	CredsStore  string                `json:"credsStore"`
	CredHelpers map[string]string     `json:"credHelpers"`
}

type loginEntry struct {
	Auth          string `json:"auth"` // base64 of user:password
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// helperTime is how long a credential helper may take; some ask a person.
const helperTime = 30 * time.Second

// hubServer is what Docker Hub is called among logins, and hubDomain in
// references.
const (
	hubServer = "https://index.docker.io/v1/"
	hubDomain = "docker.io"
)

func dockerCredentials() credentials {
	return credentials{dir: daemon.ConfigDir(), ask: askHelper}
}

func askHelper(ctx context.Context, program, server string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, helperTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "get")
	cmd.Stdin = strings.NewReader(server)
	return cmd.Output()
}

// header is the login for a registry as the daemon takes it, "" where nobody
// logged in there.
func (c credentials) header(ctx context.Context, domain string) (string, error) {
	var config loginConfig
	data, err := os.ReadFile(filepath.Join(c.dir, "config.json"))
	if err != nil {
		return "", nil // never logged in anywhere
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return "", &session.Error{
			Code: "engine_pull_forbidden", Message: "Docker's configuration " + filepath.Join(c.dir, "config.json") +
				" cannot be read.",
			Hint: "Mend it, or remove it and log in again.", Err: err,
		}
	}
	server := domain
	if domain == hubDomain {
		server = hubServer
	}
	login, found, err := c.find(ctx, config, domain, server)
	if err != nil || !found {
		return "", err
	}
	return registry.EncodeAuthConfig(login)
}

func (c credentials) find(ctx context.Context, config loginConfig, domain,
	server string) (registry.AuthConfig, bool, error) {
	helper := cmp.Or(config.CredHelpers[domain], cmp.Or(config.CredHelpers[server], config.CredsStore))
	if helper != "" {
		login, found, err := c.fromHelper(ctx, helper, server)
		if found || err != nil {
			return login, found, err
		}
	}
	for name, entry := range config.Auths {
		if name == server || serverName(name) == domain {
			login, found := entry.login(server)
			return login, found, nil
		}
	}
	return registry.AuthConfig{}, false, nil
}

// fromHelper asks a credential helper. One that knows no login says so with an
// exit code of 1 and a text; that is no failure.
func (c credentials) fromHelper(ctx context.Context, helper, server string) (registry.AuthConfig, bool, error) {
	program := "docker-credential-" + helper
	said, err := c.ask(ctx, program, server)
	switch {
	case err != nil && bytes.Contains(said, []byte("credentials not found")):
		return registry.AuthConfig{}, false, nil
	case err != nil:
		return registry.AuthConfig{}, false, &session.Error{
			Code: "engine_pull_forbidden", Message: "The login for " + server + " could not be read: " + program +
				" failed.",
			Hint: "Try `docker pull` by hand, or log in again.", Err: err,
		}
	}
	var answer struct{ Username, Secret string }
	if err := json.Unmarshal(said, &answer); err != nil {
		return registry.AuthConfig{}, false, &session.Error{Code: "engine_pull_forbidden",
			Message: program + " answered with something else than a login.", Err: err}
	}
	if answer.Username == "<token>" {
		return registry.AuthConfig{IdentityToken: answer.Secret, ServerAddress: server}, true, nil
	}
	return registry.AuthConfig{Username: answer.Username, Password: answer.Secret, ServerAddress: server}, true, nil
}

// serverName is the domain of an entry among logins, which may be a whole URL.
func serverName(entry string) string {
	entry = strings.TrimPrefix(strings.TrimPrefix(entry, "https://"), "http://")
	name, _, _ := strings.Cut(entry, "/")
	return name
}

func (l loginEntry) login(server string) (registry.AuthConfig, bool) {
	login := registry.AuthConfig{
		Username: l.Username, Password: l.Password, IdentityToken: l.IdentityToken, RegistryToken: l.RegistryToken,
		ServerAddress: server,
	}
	if text, err := base64.StdEncoding.DecodeString(l.Auth); err == nil && l.Auth != "" {
		user, password, ok := strings.Cut(string(text), ":")
		if ok {
			login.Username, login.Password = user, strings.TrimRight(password, "\x00")
		}
	}
	return login, login.Username != "" || login.IdentityToken != "" || login.RegistryToken != ""
}
