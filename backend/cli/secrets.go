package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
)

func (p secretCommands) secretCommand() *cobra.Command {
	parent := &cobra.Command{Use: "secret", Short: "Manage secrets for sessions, such as HF_TOKEN",
		Long: `Secrets are stored in the keyring of this computer or, without one, in a file that only you
can read. Sessions that name a secret (slipway run --secret NAME) get it as an environment
variable. The value is not in the history, recipes, logs or labels. It is sent to the machine
of the session, whose admins can read it there.`}
	parent.AddCommand(p.secretSetCommand(), p.listCommand(hub.SecretVariable, "List the secrets, without their values"),
		p.removeCommand(hub.SecretVariable, &cobra.Command{Use: "rm NAME", Aliases: []string{"remove"},
			Short: "Delete a secret. Sessions that use it keep it until they end"}))
	return parent
}

func (p secretCommands) registryCommand() *cobra.Command {
	parent := &cobra.Command{Use: "registry", Short: "Manage logins to registries of images",
		Long: `Logins are stored like secrets. Slipway uses them for your pulls, on every machine. Docker's
own logins (docker login) are not changed.`}
	parent.AddCommand(p.registryLoginCommand(), p.listCommand(hub.SecretRegistry, "List the registry logins"),
		p.removeCommand(hub.SecretRegistry, &cobra.Command{Use: "logout REGISTRY", Aliases: []string{"rm"},
			Short: "Delete a registry login"}))
	return parent
}

func (p secretCommands) secretSetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "set NAME",
		Short: "Store a secret. The value is read from a hidden prompt or from stdin",
		Long: `Set reads the value from a hidden prompt or from stdin, for example
slipway secret set HF_TOKEN < token.txt. One line break at the end is removed.`}
	return runs(cmd, func(cmd *cobra.Command, args []string) error {
		if name, _, pasted := strings.Cut(args[0], "="); pasted {
			return usagef("Run slipway secret set %s without the value, which the history of your shell keeps", name)
		}
		return p.store(hub.SecretContent{Kind: hub.SecretVariable, Name: args[0]}, "Value of "+args[0]+":")(cmd, args)
	})
}

func (p secretCommands) registryLoginCommand() *cobra.Command {
	var user string
	cmd := &cobra.Command{Use: "login REGISTRY --username USER",
		Short: "Store a registry login. The password or token is read from a hidden prompt or from stdin",
		Long: `Login stores a login for a registry such as ghcr.io, nvcr.io or docker.io. It is used for the
next pull; the registry is not contacted now. For NVIDIA NGC, the user is $oauthtoken and the
password is an API key.`}
	cmd.Flags().StringVarP(&user, "username", "u", "", "user at the registry")
	return runs(cmd, func(cmd *cobra.Command, args []string) error {
		if user == "" {
			return usagef("missing user: add --username USER")
		}
		return p.store(hub.SecretContent{Kind: hub.SecretRegistry, Name: args[0], User: user},
			"Password or token of "+user+" at "+args[0]+":")(cmd, args)
	})
}

// store returns the code of a command that reads a value and stores it.
func (p secretCommands) store(content hub.SecretContent, question string) runE {
	return p.command(func(ctx context.Context, c *caller, _ []string) (err error) {
		if content.Value, err = p.readSecret(ctx, question); err != nil {
			return err
		}
		return show(ctx, c, route.SecretSet.Body(content), func(w io.Writer, one hub.Secret) {
			fmt.Fprintf(w, "%s is stored in %s.\n", one.Name, keptText(one))
		})
	})
}

// maxSecret is how much of a value is read. Values are shorter.
const maxSecret = 1 << 20

// readSecret reads a value from a hidden prompt, or from stdin if that is not a terminal.
func (p secretCommands) readSecret(ctx context.Context, question string) (string, error) {
	if isTerminal(p.Stdin) {
		return p.ask(ctx, api.Prompt{Text: question, Secret: true})
	}
	data, err := io.ReadAll(io.LimitReader(p.Stdin, maxSecret))
	text := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if err == nil && text == "" {
		err = fail(session.CodeSettingsInvalid, "There is no value on stdin.", "Write it there, or use a terminal.")
	}
	return text, err
}

func keptText(one hub.Secret) string {
	if one.Kept == "keyring" {
		return "the keyring"
	}
	return "a file that only you can read"
}

func (p secretCommands) listCommand(kind hub.SecretKind, short string) *cobra.Command {
	cmd := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: short}
	return runs(cmd, p.command(func(ctx context.Context, c *caller, _ []string) error {
		all, err := route.Secrets.Ask(ctx, c)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(one hub.Secret) bool { return one.Kind != kind })
		return p.print(all, func(w io.Writer) {
			if kind == hub.SecretRegistry {
				table(w, "REGISTRY,USER,STORED IN,UPDATED", all, func(one hub.Secret) []string {
					return []string{one.Name, one.User, keptText(one), p.moment(&one.UpdatedAt)}
				})
				return
			}
			table(w, "NAME,STORED IN,UPDATED", all, func(one hub.Secret) []string {
				return []string{one.Name, keptText(one), p.moment(&one.UpdatedAt)}
			})
		})
	}))
}

func (p secretCommands) removeCommand(kind hub.SecretKind, cmd *cobra.Command) *cobra.Command {
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		return route.SecretDelete.At(string(kind), args[0]).Call(ctx, c, nil)
	}))
}
