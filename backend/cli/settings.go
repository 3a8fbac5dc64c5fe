package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
)

func (p planeCommands) settingsCommand() *cobra.Command {
	parent := &cobra.Command{
		Use:   "settings",
		Short: "Show and change settings",
		Long: `All settings are in settings.json in Slipway's directory, next to its JSON schema. SLIPWAY_*
variables override the file. Settings with a group, such as gpu.quantum, apply to the agent
of this computer, which reads them when it starts.`,
	}
	list := &cobra.Command{Use: "ls", Aliases: []string{"list"},
		Short: "List all settings and errors in the settings file",
		Long:  "Exits with 1 if the file or a variable has an error."}
	list.RunE = p.command(func(ctx context.Context, c *caller, _ []string) error {
		file, err := route.SettingsFile.Ask(ctx, c)
		if err != nil {
			return err
		}
		if err := p.print(file, func(w io.Writer) { settingsTable(w, file) }); err != nil {
			return err
		}
		if len(file.Problems) > 0 {
			return &exitError{ExitFailure}
		}
		return nil
	})
	set := &cobra.Command{Use: "set NAME VALUE", Short: "Change a setting",
		ValidArgsFunction: p.completeSettings}
	set.RunE = p.command(func(ctx context.Context, c *caller, args []string) error {
		return p.changeSetting(ctx, c, args[0], &args[1])
	})
	unset := &cobra.Command{Use: "unset NAME", Short: "Reset a setting to its default",
		ValidArgsFunction: p.completeSettings}
	unset.RunE = p.command(func(ctx context.Context, c *caller, args []string) error {
		return p.changeSetting(ctx, c, args[0], nil)
	})
	parent.AddCommand(list, set, unset)
	return parent
}

func (p planeCommands) changeSetting(ctx context.Context, c *caller, name string, value *string) error {
	at := route.SettingUpdate.At(name).Body(api.SettingUpdate{Value: value})
	return show(ctx, c, at, func(w io.Writer, file api.SettingsFile) {
		for _, s := range file.Settings {
			if s.Name != name {
				continue
			}
			fmt.Fprintf(w, "%s is %s.\n", name, cmp.Or(s.Value, "not set"))
			if s.Override != "" {
				p.notice("%s overrides what the file says.", s.Variable)
			}
			if s.Restart {
				p.notice("It takes effect when Slipway starts next.")
			}
		}
	})
}

func settingsTable(w io.Writer, file api.SettingsFile) {
	table(w, "SETTING,VALUE,FROM,ABOUT", file.Settings, func(s api.Setting) []string {
		from := "default"
		switch {
		case s.Override != "":
			from = s.Variable
		case s.Set:
			from = "file"
		}
		return []string{s.Name, cmp.Or(s.Value, "not set"), from, s.Text}
	})
	fmt.Fprintf(w, "\n%s\n", file.Path)
	for _, problem := range file.Problems {
		where := "variable"
		if problem.Line > 0 {
			where = "line " + strconv.Itoa(problem.Line)
		}
		if problem.Name != "" {
			where += ", " + problem.Name
		}
		fmt.Fprintf(w, "  %s: %s\n", where, problem.Message)
	}
}

// completeSettings offers the names of settings to the shell, and the choices
// of the one that was named.
func (p planeCommands) completeSettings(cmd *cobra.Command, args []string,
	word string) ([]string, cobra.ShellCompDirective) {
	return offers(p.program, route.SettingsFile, func(file api.SettingsFile, args []string) (offered []string) {
		for _, s := range file.Settings {
			if len(args) == 0 {
				offered = append(offered, s.Name)
			} else if len(args) == 1 && s.Name == args[0] {
				offered = append(offered, s.Choices...)
			}
		}
		return offered
	})(cmd, args, word)
}
