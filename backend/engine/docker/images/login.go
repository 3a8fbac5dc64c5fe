package images

import (
	"cmp"
	"context"
	"io"
	"os/exec"
	"time"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"
	"github.com/docker/cli/cli/config/credentials"
	"github.com/docker/cli/cli/config/types"
	"github.com/docker/docker-credential-helpers/client"
	helpers "github.com/docker/docker-credential-helpers/credentials"
	"github.com/docker/docker/api/types/registry"

	"slipway/backend/session"
)

// helperTime is how long a credential helper may take; some ask a person.
const helperTime = 30 * time.Second

// Docker Hub has one name among logins and another in references.
const (
	hubServer = "https://index.docker.io/v1/"
	hubDomain = "docker.io"
)

// loginHeader is the login of `docker login` for a registry, encoded for the daemon; "" if there is none in dir.
func loginHeader(ctx context.Context, dir, domain string) (string, error) {
	kept, err := config.Load(dir)
	if err != nil {
		return "", session.WrapError(err, session.CodePullForbidden,
			"Docker's configuration "+kept.Filename+" cannot be read.", "Mend it, or remove it and log in again.")
	}
	server := domain
	if domain == hubDomain {
		server = hubServer
	}
	login, err := findLogin(ctx, kept, domain, server)
	login.ServerAddress = ""
	if err != nil || login == (types.AuthConfig{}) {
		return "", err
	}
	return registry.EncodeAuthConfig(registry.AuthConfig{
		Username: login.Username, Password: login.Password, IdentityToken: login.IdentityToken,
		RegistryToken: login.RegistryToken, ServerAddress: server,
	})
}

// findLogin asks the registry's credential helper, if there is one, then the file.
func findLogin(ctx context.Context, kept *configfile.ConfigFile, domain, server string) (types.AuthConfig, error) {
	name := cmp.Or(kept.CredentialHelpers[domain], kept.CredentialHelpers[server], kept.CredentialsStore)
	if name == "" {
		return credentials.NewFileStore(kept).Get(server)
	}
	ctx, cancel := context.WithTimeout(ctx, helperTime)
	defer cancel()
	program := "docker-credential-" + name
	told, err := client.Get(func(args ...string) client.Program {
		return helper{exec.CommandContext(ctx, program, args...)}
	}, server)
	switch {
	case helpers.IsErrCredentialsNotFound(err):
		return credentials.NewFileStore(kept).Get(server)
	case err != nil:
		return types.AuthConfig{}, session.WrapError(err, session.CodePullForbidden,
			"The login for "+server+" could not be read: "+program+" failed.",
			"Try `docker pull` by hand, or log in again.")
	case told.Username == "<token>":
		return types.AuthConfig{IdentityToken: told.Secret}, nil
	}
	return types.AuthConfig{Username: told.Username, Password: told.Secret}, nil
}

// helper is one run of a credential helper. Unlike Docker's own it ends with a context and discards stderr.
type helper struct{ cmd *exec.Cmd }

func (h helper) Input(server io.Reader)  { h.cmd.Stdin = server }
func (h helper) Output() ([]byte, error) { return h.cmd.Output() }
