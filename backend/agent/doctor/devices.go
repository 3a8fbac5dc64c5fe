package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

// nvidiaControl is there where NVIDIA's driver is loaded.
const nvidiaControl = "/dev/nvidiactl"

// devicesCheck says what is found of devices. A machine without any is well.
func (d Doctor) devicesCheck(ctx context.Context, real bool) session.Check {
	c := session.Check{ID: "devices", Title: "GPUs", Result: session.CheckOK}
	found, err := d.Devices.Inventory(ctx)
	var told *gpu.Error
	switch {
	case errors.As(err, &told):
		return warns(c, told.Message, told.Hint)
	case err != nil:
		return warns(c, "What GPUs this machine has cannot be found out.", "")
	case len(found) == 0:
		c.Text = "This machine has none."
	default:
		names := make([]string, len(found))
		for i, device := range found {
			names[i] = fmt.Sprintf("GPU %d %s", device.Index, device.Model)
			if device.Memory > 0 {
				names[i] += " with " + device.Memory.String()
			}
		}
		c.Text = strings.Join(names, ", ") + "."
		if !real {
			c.Text += " They are simulated."
		}
	}
	return c
}

// attachmentCheck tries how NVIDIA devices get into containers, where the
// machine has any.
func (d Doctor) attachmentCheck(ctx context.Context, real bool) (session.Check, bool) {
	if _, err := os.Stat(nvidiaControl); err != nil || !real {
		return session.Check{}, false
	}
	return judgeAttachment(d.Engine.Attachment(ctx, true)), true
}

// judgeAttachment judges what was found.
func judgeAttachment(found engine.Attachment, err error) session.Check {
	c := session.Check{ID: "attachment", Title: "NVIDIA devices in containers", Result: session.CheckOK}
	switch {
	case err != nil:
		failed := session.AsError(err, session.CodeEngineInternal)
		return fails(c, failed.Message, failed.Hint)
	case found.Way == engine.AttachNone:
		var texts []string
		remedy := "" // of the best way
		for _, attempt := range found.Tried {
			texts, remedy = append(texts, attempt.Text), cmp.Or(remedy, attempt.Remedy)
		}
		return fails(c, strings.Join(texts, " "), remedy)
	default:
		c.Text = "Docker hands them in by " + wayText[found.Way] + "; a container started with them."
		if found.HardLimit {
			c.Text += " The driver holds parts of a device to their memory."
		}
	}
	return c
}

var wayText = map[engine.AttachWay]string{
	engine.AttachCDI: "CDI", engine.AttachRequest: "a device request", engine.AttachRuntime: "the NVIDIA runtime",
	engine.AttachSim: "simulation",
}
