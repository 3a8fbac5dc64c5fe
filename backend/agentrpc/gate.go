package agentrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"slipway/backend/session"
	"slipway/backend/vet"
)

// maxDecoded bounds the memory of one decoded message, in bytes. An element may have three bytes of JSON and a kilobyte
// as a struct.
const maxDecoded = 512 << 20

// Results that are a single text or number.
type (
	checksum string
	position int64
)

// gate checks all data of an agent.
var gate = sync.OnceValue(func() *vet.Gate { return vet.New(replies) })

// replies are the rules for types that only this package decodes.
var replies = vet.Tables{
	Types: map[reflect.Type]vet.Rule{
		reflect.TypeFor[checksum]():                     vet.Checksum,
		reflect.TypeFor[position]():                     vet.Offset,
		reflect.TypeFor[[]session.Session]():            vet.List(vet.MostSessions),
		reflect.TypeFor[[]session.Phase]():              vet.List(vet.MostSessions),
		reflect.TypeFor[[]session.Usage]():              vet.List(vet.MostRows),
		reflect.TypeFor[[]session.Terminal]():           vet.List(vet.MostSessions),
		reflect.TypeFor[[]session.App]():                vet.List(vet.MostSessions),
		reflect.TypeFor[[]session.DevicePoint]():        vet.List(vet.MostRows),
		reflect.TypeFor[[]session.Account]():            vet.List(vet.MostRows),
		reflect.TypeFor[[]session.ServiceAccount]():     vet.List(vet.MostRows),
		reflect.TypeFor[[]session.Check]():              vet.List(vet.MostSessions),
		reflect.TypeFor[[]session.Service]():            vet.List(vet.MostSessions),
		reflect.TypeFor[[]session.Folder]():             vet.List(vet.MostSessions),
		reflect.TypeFor[[]session.Image]():              vet.List(vet.MostSessions),
		reflect.TypeFor[[]session.AuditEntry]():         vet.List(session.MostAudit),
		reflect.TypeFor[[]session.PairedClient]():       vet.List(vet.MostSessions),
		reflect.TypeFor[map[string]session.Allowance](): vet.Table(vet.MostSessions, vet.Owner),
	},
	Fields: map[reflect.Type]vet.Fields{
		reflect.TypeFor[Hello](): {
			"Version": vet.Whole(0, 1<<20), "Oldest": vet.Whole(0, 1<<20), "Methods": vet.List(1000, vet.Line(64)),
			"Program": vet.Line(128),
		},
		reflect.TypeFor[downloadHead](): {"Offset": vet.Whole(-1, 1<<62)},
		reflect.TypeFor[failure]():      {"Message": vet.Message, "Hint": vet.Message, "Fields": vet.List(1000)},
	},
}

// decodeReply decodes and checks data of an agent. If it fails result is unusable.
func decodeReply[R any](body []byte, result *R) error {
	weight, err := gate().Weight(reflect.TypeFor[R]())
	if err != nil {
		return &vet.Fault{Problem: err.Error()}
	}
	if objects := 1 + bytes.Count(body, []byte{'{'}); objects*weight+32*bytes.Count(body, []byte{','}) > maxDecoded {
		return &vet.Fault{Problem: fmt.Sprintf("%d bytes hold too much", len(body))}
	}
	if err := json.Unmarshal(body, result); err != nil {
		return &vet.Fault{Problem: vet.Quote(err.Error()) + " came of reading it"}
	}
	return gate().Check(result)
}

// misfit is the fault of a valid answer that does not fit the call.
func misfit(problem string) error { return &vet.Fault{Problem: problem} }

// refused reports whether err means that the agent sent invalid data.
func refused(err error) bool {
	var fault *vet.Fault
	return errors.As(err, &fault) || isProtocol(err)
}

// refuse reports invalid data of the agent and returns the error of the call.
func (c *Client) refuse(err error) error {
	problem := err.Error()
	if fault, ok := errors.AsType[*vet.Fault](err); ok {
		problem = fault.Error()
	}
	e := session.WrapError(err, session.CodeAgentReply,
		fmt.Sprintf("The agent %s sent invalid data: %s.", c.name(), problem),
		"The data is not used. Upgrade Slipway on both machines. If it happens again, ask the admin of that machine, "+
			"or remove it.")
	if c.distrust != nil {
		c.distrust(e)
	}
	return e
}

// fit returns why an answer does not fit its call, "" if it does.
type fit[R any] = func(*R) string

func ofSession(id session.ID) fit[session.Session] {
	return func(s *session.Session) string { return another("session", s.ID == id) }
}

func ofFolder(id session.FolderID) fit[session.Folder] {
	return func(f *session.Folder) string { return another("folder", f.ID == id) }
}

func ofWork(id string) fit[session.ImageWork] {
	return func(w *session.ImageWork) string { return another("piece of work", w.ID == id) }
}

// all checks each element of a list.
func all[E any](what string, same func(*E) bool) fit[[]E] {
	return func(list *[]E) string {
		return another(what, !slices.ContainsFunc(*list, func(e E) bool { return !same(&e) }))
	}
}

// atMost checks the length of a list; 0: no limit was asked for.
func atMost[E any](limit int) fit[[]E] {
	return func(list *[]E) string {
		if limit > 0 && len(*list) > limit {
			return fmt.Sprintf("%d were asked for and %d came", limit, len(*list))
		}
		return ""
	}
}

func another(what string, same bool) string {
	if same {
		return ""
	}
	return "it is about another " + what + " than was asked for"
}

func checkList(asked session.Filter) fit[[]session.Session] {
	return atMost[session.Session](asked.Limit)
}

func checkHistory(asked historyArgs) fit[[]session.Phase] {
	return all("session", func(p *session.Phase) bool { return p.Session == asked.ID })
}

func checkUsage(asked usageArgs) fit[[]session.Usage] {
	return all("session", func(u *session.Usage) bool { return u.Session == asked.ID })
}

func checkStartApp(asked startAppArgs) fit[session.App] {
	return func(a *session.App) string { return another("app", a.ID == asked.App) }
}

func checkCommitSession(asked commitSessionArgs) fit[session.ImageWork] {
	return func(w *session.ImageWork) string { return another("session", w.Session == asked.ID) }
}

// checkListFiles checks that a part of a directory is the next one.
func checkListFiles(asked listFilesArgs) fit[session.FileListing] {
	req := asked.List
	return func(l *session.FileListing) string {
		again := req.After != "" && slices.ContainsFunc(l.Entries, func(f session.FileInfo) bool {
			return f.Name == req.After
		})
		if again || l.More && len(l.Entries) == 0 || req.Limit > 0 && len(l.Entries) > req.Limit {
			return "it is not the next part of the directory"
		}
		return ""
	}
}

// checkExpectImage checks that the missing parts are parts of the image.
func checkExpectImage(parts session.ImageParts) fit[session.ImageArrival] {
	return func(a *session.ImageArrival) string {
		if a.ID != parts.ID {
			return another("image", false)
		}
		known := map[string]bool{session.ImageConfig: true}
		for _, layer := range parts.Layers {
			known[layer.Digest] = true
		}
		for _, mark := range a.Missing {
			if !known[mark.Part] {
				return "it asks for a part that the image does not have"
			}
		}
		return ""
	}
}

// checkWatch checks the events after a cursor in order: their numbers grow, and another epoch begins with the whole
// state.
func checkWatch(after session.Cursor) func(session.Event) error {
	return func(e session.Event) error {
		switch {
		case e.Epoch != after.Epoch && e.Reset == nil:
			return misfit("an event of another epoch came without the whole state")
		case e.Epoch == after.Epoch && (e.Seq < after.Seq || e.Seq == after.Seq && e.Reset == nil):
			return misfit(fmt.Sprintf("event %d came after event %d", e.Seq, after.Seq))
		}
		after = session.Cursor{Epoch: e.Epoch, Seq: e.Seq}
		return nil
	}
}

// checkPreview checks the spec of a preview, which is the one of the call with defaults. If that is invalid, the
// preview has errors and gets the spec of the call, since only valid specs are accepted from an agent.
func checkPreview(asked previewArgs) fit[session.Preview] {
	return func(p *session.Preview) string {
		fault := gate().Check(&p.Spec)
		switch {
		case fault == nil:
		case len(p.Errors) == 0:
			return "spec." + fault.Error()
		default:
			p.Spec = asked.Spec.WithDefaults()
		}
		p.Further = p.Further[:min(len(p.Further), max(asked.Count, 1)-1)] // of more was not asked
		return ""
	}
}
