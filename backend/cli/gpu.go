package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/session"
	"slipway/gpu"
)

func (p usageCommands) gpuCommand() *cobra.Command {
	var on string
	cmd := &cobra.Command{
		Use:     "gpu [--on AGENT]",
		Aliases: []string{"gpus"},
		Short:   "Show devices, their load and who uses them",
	}
	p.onFlag(cmd, &on, "only devices of this agent")
	cmd.AddCommand(p.gpuHistoryCommand())
	cmd.RunE = p.command(func(ctx context.Context, c *caller, _ []string) error {
		return show(ctx, c, route.Devices.With("agent", on), func(w io.Writer, boards []api.DeviceBoard) {
			for i, board := range boards {
				if i > 0 {
					fmt.Fprintln(w)
				}
				p.boardTable(w, board)
			}
		})
	})
	return cmd
}

func (p usageCommands) boardTable(w io.Writer, board api.DeviceBoard) {
	if !board.Online {
		fmt.Fprintf(w, "%s is not reached; this is %s old.\n", board.Agent, span(p.Now().Sub(board.At)))
	}
	if board.Text != "" {
		fmt.Fprintf(w, "%s: %s\n", board.Agent, board.Text)
	}
	if len(board.Devices) == 0 {
		if board.Text == "" {
			fmt.Fprintf(w, "%s has no devices.\n", board.Agent)
		}
		return
	}
	fmt.Fprintf(w, "%s: shares of %s, strategy %s, attached by %s, measured by %s\n", board.Agent, share(board.Quantum),
		board.Strategy, board.Attach, board.Source)
	rows := [][]string{{"DEVICE", "MODEL", "LOAD", "MEMORY", " POWER", " TEMP", " FREE", "KEPT BY"}}
	for _, d := range board.Devices {
		rows = append(rows, []string{deviceName(d), d.Model, loadText(d.Util), memoryBar(d.MemoryUsed, d.Memory),
			powerText(d.Power), temperatureText(d.Temperature),
			share(d.Free), string(d.Level)})
		for _, holder := range d.Holders {
			rows = append(rows, holderRow(holder))
		}
	}
	columns(w, rows)
	for _, d := range board.Devices {
		if d.Lost != nil {
			fmt.Fprintf(w, "%s is lost: %s. %s\n", deviceName(d), d.Lost.Why, d.Lost.Hint)
		} else if d.Unread {
			fmt.Fprintf(w, "%s is given to nobody: its driver does not tell now what is free.\n", deviceName(d))
		} else if d.Over != "" {
			fmt.Fprintf(w,
				"%s is over-allocated: %s. Nothing further of it is allocated until sessions that hold it end.\n",
				deviceName(d), d.Over)
		}
	}
}

// deviceName is how people call a device. One that is promised to somebody and
// not found any more has no number.
func deviceName(d api.DeviceState) string {
	if d.Model == "" {
		return string(d.UUID) + " (not found)"
	}
	return "GPU " + strconv.Itoa(d.Index)
}

// holderRow says what a session or a foreign process makes of a device.
func holderRow(h session.DeviceHolder) []string {
	name, memory := "  "+h.Name+" ("+h.Owner+")", "-"
	switch {
	case h.Session == "" && h.PID > 0:
		name = fmt.Sprintf("  %s (%s, pid %d)", h.Name, h.Owner, h.PID)
	case h.Session == "": // a session of another Slipway, whose name says whose
		name = "  " + h.Name
	}
	if h.Memory != nil {
		memory = size(*h.Memory)
	}
	if h.Promised > 0 {
		memory += " of " + size(h.Promised)
	}
	held := ""
	if h.Session != "" || h.Share > 0 {
		held = "holds " + share(h.Share)
	}
	load := "-"
	if h.Util != nil {
		load = permyriad(*h.Util)
	}
	return []string{name, held, load, memory, "", "", "", ""}
}

// share writes thousandths of a device as people do: "0.5".
func share[N ~int](thousandths N) string {
	return strconv.FormatFloat(float64(thousandths)/1000, 'f', -1, 64)
}

func permyriad(n int) string { return strconv.Itoa((n+50)/100) + " %" }

const barWidth = 10

// bar is a bar that is filled in proportion.
func bar(part, whole int64) string {
	filled := 0
	if whole > 0 {
		filled = int(min(max((part*barWidth+whole/2)/whole, 0), barWidth))
	}
	return strings.Repeat("█", filled) + strings.Repeat("░", barWidth-filled)
}

func loadText(util *int) string {
	if util == nil {
		return "-"
	}
	return bar(int64(*util), 10000) + " " + permyriad(*util)
}

func memoryBar(used *gpu.Bytes, total gpu.Bytes) string {
	switch {
	case used == nil && total == 0:
		return "-"
	case used == nil:
		return size(total)
	case total == 0:
		return size(*used)
	}
	return bar(int64(*used), int64(total)) + " " + size(*used) + " of " + size(total)
}

func powerText(milliwatts *gpu.MilliWatt) string {
	if milliwatts == nil {
		return "-"
	}
	return strconv.FormatFloat(float64(*milliwatts)/1000, 'f', 1, 64) + " W"
}

func temperatureText(celsius *int) string {
	if celsius == nil {
		return "-"
	}
	return strconv.Itoa(*celsius) + " °C"
}
