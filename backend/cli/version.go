package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/build/notices"
)

func (p planeCommands) versionCommand() *cobra.Command {
	var licenses, check bool
	cmd := &cobra.Command{Use: "version [--check | --licenses]",
		Short: "Print the version of this program and of the running Slipway",
		Long: `With --check, version asks the release host of the setting updates whether there is a newer
version, and prints what changed and how to upgrade this copy. It installs nothing.`}
	cmd.Flags().BoolVar(&check, "check", false, "ask for a newer version")
	cmd.Flags().BoolVar(&licenses, "licenses", false, "print the works of others in this program, and their licences")
	cmd.MarkFlagsMutuallyExclusive("check", "licenses")
	return runs(cmd, func(cmd *cobra.Command, args []string) error {
		switch {
		case licenses:
			_, err := io.WriteString(p.Stdout, notices.Text)
			return err
		case check:
			return p.command(p.checkVersion)(cmd, args)
		}
		return p.here(p.printVersions)(cmd, args)
	})
}

func (p planeCommands) printVersions(ctx context.Context, home place.Home) error {
	answer := struct {
		api.Version
		Server *api.Version `json:"server"` // null: none is running
	}{Version: p.Version}
	if connection, err := client.Connect(ctx, home); err == nil {
		version, err := route.Version.Ask(ctx, connection)
		if err != nil {
			return err
		}
		answer.Server = &version
	}
	return p.print(answer, func(w io.Writer) {
		rows := []string{"Slipway", versionText(p.Version)}
		if answer.Server != nil {
			rows = append(rows, "Control plane", versionText(*answer.Server))
		}
		fields(w, rows...)
	})
}

func versionText(v api.Version) string {
	return fmt.Sprintf("%s (%s, %s, %s/%s)", v.Version, v.Commit, v.Go, v.OS, v.Arch)
}

// checkVersion prints a newer version than that of the control plane, which asks for it.
func (p planeCommands) checkVersion(ctx context.Context, c *caller, _ []string) error {
	offer, err := route.UpdatesCheck.Ask(ctx, c)
	if err == nil && offer.Problem != nil {
		err = &client.Refused{Problem: *offer.Problem}
	}
	if err != nil {
		return err
	}
	return p.print(offer, func(w io.Writer) {
		pairs := []string{"Slipway", versionText(p.Version), "Newer", "none"}
		if newer := offer.Newer; newer != nil {
			pairs[3] = newer.Version + " of " + newer.Date
			pairs = append(pairs, "Upgrade", session.Reader{}.Read(offer.Advice...))
		}
		fields(w, pairs...)
		if offer.Newer != nil {
			fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(offer.Newer.Notes))
		}
	})
}
