package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
)

func (p planeCommands) diagnosticsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diagnostics",
		Short: "Print a support report with secrets removed",
		Args:  exactly(0, "no argument"),
	}
	cmd.RunE = p.command(func(ctx context.Context, c *caller, _ []string) error {
		return show(ctx, c, route.Diagnostics,
			func(w io.Writer, report api.Diagnostics) { _, _ = io.WriteString(w, report.Text) })
	})
	return cmd
}
