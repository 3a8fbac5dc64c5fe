package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"slipway/backend/api"
)

func (p planeCommands) diagnosticsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diagnostics",
		Short: "Print a support report with secrets removed",
		Args:  exactly(0, "no argument"),
	}
	cmd.RunE = p.command(func(ctx context.Context, c *client, _ []string) error {
		var report api.Diagnostics
		raw, err := c.get(ctx, "/api/v1/diagnostics", &report)
		if err != nil {
			return err
		}
		return p.print(raw, func(w io.Writer) { _, _ = io.WriteString(w, report.Text) })
	})
	return cmd
}
