package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
)

func (p recipeCommands) presetCommand() *cobra.Command {
	parent := &cobra.Command{
		Use:   "preset",
		Short: "Manage resource presets",
	}
	list := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List presets"}
	list.RunE = p.command(func(ctx context.Context, c *caller, _ []string) error {
		return show(ctx, c, route.Presets, presetTable)
	})
	rename := &cobra.Command{Use: "rename PRESET NAME", Short: "Rename one of your presets"}
	rename.RunE = p.command(func(ctx context.Context, c *caller, args []string) error {
		found, err := c.findPreset(ctx, args[0])
		if err != nil {
			return err
		}
		return show(ctx, c, route.PresetUpdate.At(found.ID).Body(hub.PresetUpdate{Name: &args[1]}), presetName)
	})
	remove := &cobra.Command{Use: "rm PRESET", Short: "Delete one of your presets"}
	remove.RunE = p.command(func(ctx context.Context, c *caller, args []string) error {
		found, err := c.findPreset(ctx, args[0])
		if err != nil {
			return err
		}
		_, err = route.PresetDelete.At(found.ID).Ask(ctx, c)
		return err
	})
	parent.AddCommand(list, p.presetSaveCommand(), rename, remove)
	return parent
}

func (p recipeCommands) presetSaveCommand() *cobra.Command {
	flags := specFlags{
		fieldFlag("int", "cpu", "resources.cpu", "whole CPUs (default 1)"),
		fieldFlag("string", "mem", "resources.memory", "memory with m, g or t (default 1g)"),
		fieldFlag("string", "shm", "resources.shm", "shared memory (default automatic)"),
		fieldFlag("string", "gpu", "accelerator", "devices, as in slipway run"),
	}
	cmd := &cobra.Command{Use: "save NAME [--cpu N] [--mem SIZE] [--shm SIZE] [--gpu WHAT]", Short: "Save a preset"}
	flags.add(cmd)
	cmd.RunE = p.command(func(ctx context.Context, c *caller, args []string) error {
		var spec session.Spec
		wrong, err := flags.set(&spec)
		if err == nil {
			err = invalid(session.CodeSettingsInvalid, wrong)
		}
		if err != nil {
			return err
		}
		request := hub.PresetContent{Name: args[0], Resources: spec.Resources, Accelerator: spec.Accelerator}
		return show(ctx, c, route.PresetCreate.Body(request), presetName)
	})
	return cmd
}

func presetName(w io.Writer, preset hub.Preset) { fmt.Fprintln(w, preset.Name) }

func presetTable(w io.Writer, presets []hub.Preset) {
	table(w, "NAME, CPU, MEMORY, SHARED,GPU,KIND", presets, func(preset hub.Preset) []string {
		shared, devices, kind := "automatic", "", "your own"
		if !preset.Accelerator.IsZero() {
			devices = preset.Accelerator.String()
		}
		if preset.Resources.Shm != 0 {
			shared = size(int64(preset.Resources.Shm))
		}
		if preset.Builtin {
			kind = "built in"
		}
		return []string{preset.Name, strconv.Itoa(preset.Resources.CPU), size(int64(preset.Resources.Memory)), shared,
			devices, kind}
	})
}

// findPreset finds a preset by its id or its name, whatever its case.
func (c *caller) findPreset(ctx context.Context, ref string) (hub.Preset, error) {
	presets, err := route.Presets.Ask(ctx, c)
	if err != nil {
		return hub.Preset{}, err
	}
	for _, preset := range presets {
		if preset.ID == ref || strings.EqualFold(preset.Name, ref) {
			return preset, nil
		}
	}
	return hub.Preset{}, fail(session.CodeRecipeNotFound, fmt.Sprintf("There is no preset %q.", ref),
		"slipway preset ls lists all of them.")
}
