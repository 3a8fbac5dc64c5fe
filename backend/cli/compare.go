package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/recipe"
	"slipway/backend/session"
	"slipway/gpu"
)

func (p sessionCommands) compareCommand() *cobra.Command {
	return asks(p.program, &cobra.Command{Use: "compare SESSION", ValidArgsFunction: p.completeSessions(allSessions),
		Short: "Compare a session with the last one like it that succeeded",
		Long: `Compare prints what differs between a session and the last one before it that succeeded: the
settings, the image, the machine, what was allocated and what was used. It looks for a session
of the same name, or else of the same image and command.`}, "", route.LastSuccess, p.comparison)
}

func (p sessionCommands) comparison(w io.Writer, c api.SuccessComparison) {
	if c.Success == nil {
		fmt.Fprintln(w, "No session like it is known that succeeded before.")
		return
	}
	this, success := p.runFields(c.This), p.runFields(*c.Success)
	rows := [][]string{{"FIELD", c.This.Session.Name, c.Success.Session.Name}}
	for i, field := range this {
		rows = append(rows, []string{field[0], cmp.Or(field[1], "-"), cmp.Or(success[i][1], "-")})
	}
	for _, f := range slices.DeleteFunc(c.Spec, func(f recipe.Field) bool { return f.Same }) {
		rows = append(rows, []string{f.Field, oneLine(f.Left), oneLine(f.Right)})
	}
	columns(w, rows)
}

// runFields returns the names and values of what a session had and used.
func (p sessionCommands) runFields(r api.Run) (fields [][2]string) {
	s := r.Session
	var memory, vram, busy, devices string
	if r.MemoryPeak > 0 {
		memory = size(r.MemoryPeak)
	}
	if r.VRAMPeak > 0 {
		vram = size(r.VRAMPeak)
	}
	if r.BusyCPUs > 0 {
		busy = fmt.Sprintf("%.2f", r.BusyCPUs)
	}
	if len(s.Grants.GPUs) > 0 {
		devices = named(s.Grants.GPUs, func(g gpu.Grant) string {
			return g.Share.String() + " of " + string(cmp.Or(g.Instance, g.Device))
		})
	}
	return [][2]string{{"id", string(s.ID)}, {"created", p.moment(&s.CreatedAt)}, {"machine", s.Agent},
		{"image digest", session.ImageDigest(s.Pinned)}, {"CPUs allocated", strconv.Itoa(len(s.Grants.CPUs))},
		{"memory allocated", size(s.Grants.Memory)}, {"GPUs allocated", devices}, {"duration", p.elapsed(s)},
		{"end", string(s.Reason)}, {"CPUs in use, average", busy}, {"memory peak", memory}, {"GPU memory peak", vram}}
}
