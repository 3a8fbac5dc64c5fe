package doctor

import (
	"strings"
	"testing"

	"slipway/backend/engine"
	"slipway/backend/session"
)

func TestAttachmentIsJudged(t *testing.T) {
	none := engine.Attachment{Way: engine.AttachNone, Tried: []engine.Attempt{
		{Way: engine.AttachCDI, Text: "No CDI.", Remedy: "update"}, {Way: engine.AttachRequest, Text: "No toolkit.",
			Remedy: "install"},
	}}
	for _, c := range []struct {
		name   string
		found  engine.Attachment
		err    error
		result session.CheckResult
		text   string
		remedy string
	}{
		{"a way that works", engine.Attachment{Way: engine.AttachCDI}, nil, session.CheckOK, "by CDI", ""},
		{"with a limit", engine.Attachment{Way: engine.AttachCDI, HardLimit: true}, nil, session.CheckOK, "holds parts",
			""},
		{"no way, with the remedy of the best", none, nil, session.CheckFailed, "No CDI. No toolkit.", "update"},
		{"a daemon that is down", engine.Attachment{}, session.NewError("engine_connect_unavailable",
			"It does not answer.",
			"start it"), session.CheckFailed, "It does not answer.", "start it"},
	} {
		got := judgeAttachment(c.found, c.err)
		if got.Result != c.result || !strings.Contains(got.Text, c.text) || got.Remedy != c.remedy {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
}
