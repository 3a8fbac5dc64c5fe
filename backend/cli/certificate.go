package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"slipway/backend/api/route"
	"slipway/backend/session"
)

func (p serviceCommands) certificateCommand() *cobra.Command {
	var on string
	cmd := &cobra.Command{Use: "certificate SERVICE",
		Short: "Print the certificate that clients on other computers trust",
		Long: `Prints the certificate that the machine of the service made for services.listen, in PEM.
Clients that use the service from other computers have to trust it.`}
	p.onFlag(cmd, &on, "agent of the machine, if several have a service of this name")
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		one, err := route.Service.At(args[0]).With("agent", on).Ask(ctx, c)
		if err != nil {
			return err
		}
		for _, at := range one.Addresses {
			if at.Certificate != "" {
				return p.print(at, func(w io.Writer) { fmt.Fprint(w, at.Certificate) })
			}
		}
		return failAs(ExitNotFound, session.CodeServiceNotFound, "The machine of "+one.Name+" has made no certificate.",
			"Set services.listen there, or trust the authority of services.certificate.")
	}))
}
