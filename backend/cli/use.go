package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"slipway/backend/api/route"
	"slipway/backend/place"
)

// machineFile is the file with the name of the default machine of the command line on this computer.
func machineFile(env func(string) string) (string, error) {
	home, err := place.FindHome(env)
	return home.Join("default-machine"), err
}

// defaultMachine returns the default machine, or nothing if there is none.
func defaultMachine(env func(string) string) (string, error) {
	file, err := machineFile(env)
	if err != nil {
		return "", err
	}
	name, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return string(name), err
}

func setDefaultMachine(env func(string) string, name string) error {
	file, err := machineFile(env)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(name), 0o600)
}

// hasDefault marks flags --on whose default slipway use sets.
const hasDefault = "slipway-default-machine"

// usesMachine makes slipway use set the default of the flag --on of a command that lists or launches.
func usesMachine(cmd *cobra.Command) *cobra.Command {
	_ = cmd.Flags().SetAnnotation("on", hasDefault, nil) // fails only for a flag that is not there
	return cmd
}

// useMachine sets the flag --on of a list to the default machine if it is not given.
func (p *program) useMachine(cmd *cobra.Command) error {
	flag := cmd.Flags().Lookup("on")
	if flag == nil || flag.Changed {
		return nil
	}
	if _, marked := flag.Annotations[hasDefault]; !marked {
		return nil
	}
	machine, err := defaultMachine(p.Env)
	if err != nil || machine == "" {
		return err
	}
	if p.output == outputTable {
		p.notice("Only %s, the default machine of slipway use. --on= lists all machines.", machine)
	}
	return flag.Value.Set(machine)
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
			return setDefaultMachine(p.Env, "")
		case len(args) > 0:
			return p.command(func(ctx context.Context, c *caller, args []string) error {
				a, err := route.Agent.At(args[0]).Ask(ctx, c)
				if err == nil {
					err = setDefaultMachine(p.Env, a.Name)
				}
				if err != nil {
					return err
				}
				return p.print(a, func(w io.Writer) { fmt.Fprintf(w, "%s is the default machine.\n", a.Name) })
			})(cmd, args)
		}
		machine, err := defaultMachine(p.Env)
		if err != nil {
			return err
		}
		return p.print(map[string]string{"name": machine}, func(w io.Writer) {
			fmt.Fprintln(w, cmp.Or(machine, "No default machine."))
		})
	})
}
