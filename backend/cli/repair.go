package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/session"
)

// leaveOutMount leaves out what --no-volume names. What the file does not have is
// an error: nothing else may be left out in its place.
func leaveOutMount(spec *session.Spec, name string) error {
	mounts := len(spec.Mounts)
	spec.Mounts = slices.DeleteFunc(spec.Mounts, func(m session.Mount) bool {
		return m.Folder == name || m.Source == name || session.MountTarget(m) == name
	})
	if len(spec.Mounts) == mounts {
		return usagef("--no-volume %s: the file does not mount this folder or directory", name)
	}
	return nil
}

// leaveOutAfter does the same for --no-after.
func leaveOutAfter(spec *session.Spec, name string) error {
	at := slices.Index(spec.After, name)
	if at < 0 {
		return usagef("--no-after %s: the file does not wait for this session", name)
	}
	spec.After = slices.Delete(spec.After, at, at+1)
	return nil
}

// createMissing creates the folders that a spec mounts and there are not, on the
// agent where it would land. It does nothing where more than that is wrong: the
// launch tells it, and nothing is half done.
func (p runCommands) createMissing(ctx context.Context, c *caller, spec session.Spec) error {
	preview, err := route.Preview.Body(spec).Ask(ctx, c)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range preview.Errors {
		i, part := mountField(e.Field)
		if part != "folder" || i >= len(spec.Mounts) || e.Kind != session.KindNotFound {
			return nil
		}
		if name := spec.Mounts[i].Folder; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		request := api.FolderRequest{FolderRequest: session.FolderRequest{Name: name}, Agent: preview.Agent}
		folder, err := route.FolderCreate.Body(request).Ask(ctx, c)
		if err != nil {
			return err
		}
		p.notice("The folder %s was created on %s.", folder.Name, folder.Agent)
	}
	return nil
}

// mountField reads mounts[1].folder as 1 and folder; part is "" for other fields.
func mountField(field string) (i int, part string) {
	rest, ok := strings.CutPrefix(field, "mounts[")
	number, part, found := strings.Cut(rest, "].")
	i, err := strconv.Atoi(number)
	if !ok || !found || err != nil || i < 0 {
		return 0, ""
	}
	return i, part
}

// withRepairs adds to each field of a refusal the flags that mend it: a file
// need not be changed to be run here.
func withRepairs(err error, spec session.Spec) error {
	var told *client.Refused
	if !errors.As(err, &told) || len(told.Problem.Fields) == 0 {
		return err
	}
	mended := *told
	mended.Problem.Fields = slices.Clone(told.Problem.Fields)
	for i, e := range mended.Problem.Fields {
		if flags := repairOf(e.Field, spec); flags != "" {
			mended.Problem.Fields[i].Hint = strings.TrimSpace(e.Hint + " Or " + flags + ".")
		}
	}
	if len(mended.Problem.Fields) == 1 {
		mended.Problem.Hint = mended.Problem.Fields[0].Hint
	}
	return &mended
}

// repairOf are the flags that repair one field.
func repairOf(field string, spec session.Spec) string {
	if i, part := mountField(field); part != "" && i < len(spec.Mounts) {
		return repairOfMount(spec.Mounts[i], part)
	}
	if number, ok := strings.CutPrefix(field, "after["); ok {
		if i, err := strconv.Atoi(strings.TrimSuffix(number, "]")); err == nil && i >= 0 && i < len(spec.After) {
			return "add --no-after " + shellWord(spec.After[i])
		}
	}
	switch field {
	case "agent":
		return "add --on NAME, or --on= for any agent"
	case "group":
		return "add --group NAME, or --group= for any"
	case "image":
		return "add --image NAME"
	case "accelerator":
		return "add --gpu with another amount, or --gpu none"
	case "notBefore":
		return "add --at now"
	case "name":
		return "add --name NAME"
	case "resources.cpu":
		return "add --cpu with another number"
	case "resources.memory":
		return "add --mem with another amount"
	}
	return ""
}

func repairOfMount(m session.Mount, part string) string {
	if part == "target" {
		return ""
	}
	name, create := m.Source, ""
	if m.Folder != "" {
		name = m.Folder
	}
	if part == "folder" {
		create = "--create-folders, "
	}
	return fmt.Sprintf("add %s-v OTHER:%s, or --no-volume %s", create, shellWord(session.MountTarget(m)), shellWord(name))
}
