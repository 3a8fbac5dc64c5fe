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
)

func (p sessionCommands) tagCommand() *cobra.Command {
	var add, remove []string
	cmd := &cobra.Command{Use: "tag SESSION…", Short: "Tag sessions",
		Long: "Adds and removes tags, also of finished sessions, and prints the result.",
		Example: "  slipway tag train-a train-b --add paper\n  slipway tag train-a --remove paper\n  " +
			"slipway ps -a --tag paper",
		ValidArgsFunction: p.completeSessions(allSessions)}
	cmd.Flags().StringSliceVar(&add, "add", nil, "tags to add, separated by commas; repeatable")
	cmd.Flags().StringSliceVar(&remove, "remove", nil, "tags to remove, separated by commas; repeatable")
	cmd.RunE = p.command(func(ctx context.Context, c *caller, args []string) error {
		var tagged []api.Session
		var lines, problems = []string{}, []error{}
		for _, ref := range args {
			s, err := c.tag(ctx, ref, add, remove)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			tagged, lines = append(tagged, s), append(lines, s.Name+": "+strings.Join(s.Tags, ", "))
		}
		if err := p.print(tagged, func(w io.Writer) { fmt.Fprintln(w, strings.Join(lines, "\n")) }); err != nil {
			return err
		}
		return runCommands(p).failures(problems)
	})
	return cmd
}

// tag changes the tags of one session; without anything to change it reads it.
func (c *caller) tag(ctx context.Context, ref string, add, remove []string) (api.Session, error) {
	s, err := c.find(ctx, ref)
	if err != nil || len(add)+len(remove) == 0 {
		return s, err
	}
	tags := slices.DeleteFunc(append(s.Tags, add...), func(tag string) bool { return slices.Contains(remove, tag) })
	return route.SessionUpdate.At(string(s.ID)).Body(api.SessionUpdate{Tags: &tags}).Ask(ctx, c)
}
