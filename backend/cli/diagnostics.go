package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
)

func (p planeCommands) diagnosticsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diagnostics",
		Short: "Print a support report with secrets removed",
		RunE: p.command(func(ctx context.Context, c *caller, _ []string) error {
			return show(ctx, c, route.Diagnostics,
				func(w io.Writer, report api.Diagnostics) { _, _ = io.WriteString(w, report.Text) })
		}),
	}
}
