package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"slipway/backend/api/route"
	"slipway/backend/place"
)

// cliSettings are the settings of the command line on this computer.
type cliSettings struct {
	Machine string `json:"machine,omitempty"` // its agent; empty: no default
}

func cliSettingsFile(home place.Home) string { return home.Join("cli.json") }

// cliSettings returns the settings, which are empty if there is no file.
func (p *program) cliSettings() (settings cliSettings, err error) {
	home, err := place.FindHome(p.Env)
	if err != nil {
		return settings, err
	}
	data, err := os.ReadFile(cliSettingsFile(home))
	if errors.Is(err, fs.ErrNotExist) {
		return settings, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &settings)
	}
	if err != nil {
		err = fmt.Errorf("the command line's settings in %s cannot be read: %w", cliSettingsFile(home), err)
	}
	return settings, err
}

func (p *program) saveCLISettings(settings cliSettings) error {
	home, err := place.FindHome(p.Env)
	if err == nil {
		err = home.Make()
	}
	if err != nil {
		return err
	}
	data, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	return os.WriteFile(cliSettingsFile(home), data, 0o600)
}

// defaultMachine marks flags --on whose default slipway use sets.
const defaultMachine = "slipway-default-machine"

// usesMachine makes slipway use set the default of the flag --on of a command that lists or launches.
func usesMachine(cmd *cobra.Command) *cobra.Command {
	_ = cmd.Flags().SetAnnotation("on", defaultMachine, nil) // fails only for a flag that is not there
	return cmd
}

// useMachine sets the flag --on of a list to the default machine if it is not given.
func (p *program) useMachine(cmd *cobra.Command) error {
	flag := cmd.Flags().Lookup("on")
	if flag == nil || flag.Changed {
		return nil
	}
	if _, marked := flag.Annotations[defaultMachine]; !marked {
		return nil
	}
	settings, err := p.cliSettings()
	if err != nil || settings.Machine == "" {
		return err
	}
	if p.output == outputTable {
		p.notice("Only %s, the default machine of slipway use. --on= lists all machines.", settings.Machine)
	}
	return flag.Value.Set(settings.Machine)
}

func (p planeCommands) useCommand() *cobra.Command {
	clear := false
	cmd := &cobra.Command{Use: "use [AGENT]", Short: "Set, show or clear the default machine of this command line",
		Long: `Use sets the machine on which slipway run launches, and to which slipway ps and other lists
with --on are limited, if you omit --on. Without AGENT it prints the default machine.

It applies only to the command line on this computer, and only to launches and lists. A recipe
(-f) that names an agent, --group and --on override it; --on= means any machine.`,
		Example: `  slipway use lab
  slipway use
  slipway use --clear`}
	cmd.Flags().BoolVar(&clear, "clear", false, "remove the default machine")
	return runs(cmd, func(cmd *cobra.Command, args []string) error {
		switch {
		case clear && len(args) > 0:
			return usagef("use either AGENT or --clear")
		case clear:
			return p.saveCLISettings(cliSettings{})
		case len(args) > 0:
			return p.command(func(ctx context.Context, c *caller, args []string) error {
				a, err := route.Agent.At(args[0]).Ask(ctx, c)
				if err == nil {
					err = p.saveCLISettings(cliSettings{Machine: a.Name})
				}
				if err != nil {
					return err
				}
				return p.print(a, func(w io.Writer) { fmt.Fprintf(w, "%s is the default machine.\n", a.Name) })
			})(cmd, args)
		}
		settings, err := p.cliSettings()
		if err != nil {
			return err
		}
		return p.print(map[string]string{"name": settings.Machine}, func(w io.Writer) {
			fmt.Fprintln(w, cmp.Or(settings.Machine, "No default machine."))
		})
	})
}
