package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/session"
)

func (p usageCommands) gpuHistoryCommand() *cobra.Command {
	var since, agent string
	cmd := &cobra.Command{
		Use:   "history DEVICE",
		Short: "Show the load history of a device, one line per minute",
	}
	cmd.Flags().StringVar(&since, "since", "1h", "start time, or how long ago, such as 6h")
	cmd.Flags().StringVar(&agent, "on", "", "agent of the device (default: the first agent with a device)")
	cmd.RunE = p.command(func(ctx context.Context, c *caller, args []string) error {
		board, device, err := c.findDevice(ctx, args[0], agent)
		if err != nil {
			return err
		}
		return show(ctx, c, route.DeviceHistory.At(board.Agent, string(device.UUID)).With("since", p.ago(since)),
			func(w io.Writer, points []session.DevicePoint) { p.pointTable(w, device, points) })
	})
	return cmd
}

// findDevice finds a device by its number or UUID, with the board it is on.
func (c *caller) findDevice(ctx context.Context, ref, agent string) (api.DeviceBoard, api.DeviceState, error) {
	boards, err := route.Devices.Ask(ctx, c)
	if err != nil {
		return api.DeviceBoard{}, api.DeviceState{}, err
	}
	for _, board := range boards {
		if agent != "" && board.Agent != agent {
			continue
		}
		for _, device := range board.Devices {
			if strings.EqualFold(string(device.UUID), ref) || device.Model != "" && strconv.Itoa(device.Index) == ref {
				return board, device, nil
			}
		}
	}
	return api.DeviceBoard{}, api.DeviceState{}, fail(session.CodeDeviceNotFound,
		fmt.Sprintf("There is no device %q.", ref), "slipway gpu lists all of them.")
}

// pointTable writes one line for each minute: the last sample in it.
func (p usageCommands) pointTable(w io.Writer, device api.DeviceState, points []session.DevicePoint) {
	if len(points) == 0 {
		fmt.Fprintln(w, "Nothing was measured in that time.")
		return
	}
	rows := [][]string{{"TIME", "LOAD", "MEMORY", " POWER", " TEMP"}}
	for i, point := range points {
		if i+1 < len(points) && points[i+1].At.Truncate(time.Minute).Equal(point.At.Truncate(time.Minute)) {
			continue
		}
		rows = append(rows, []string{point.At.In(p.Now().Location()).Format("2006-01-02 15:04"), loadText(point.Util),
			memoryBar(point.MemoryUsed, device.Memory), powerText(point.Power), temperatureText(point.Temperature)})
	}
	columns(w, rows)
}
