// Package access gives each person who reaches an agent the agent as they may see it, and writes down what they do.
//
// A [Gate] stands before one agent. [Gate.As] returns that agent for one identity. An admin sees everything and may
// launch for others. A user has their own sessions and those only: sessions of other owners are reported as not found,
// so that their existence does not leak. Numbers stay true: what others hold counts, without their names.
//
// So it is with images that were made of sessions or brought by a person: they have names of that person's under
// slipway-custom/. All others are everybody's, and only an admin replaces or removes them. What was pulled with the
// agent's registry logins is for those who may use the logins.
//
// Of the machine's directories a user may mount and list those that were opened to them, because whatever the agent may
// mount could hold what is others' or the agent's own.
package access

import (
	"context"
	"fmt"
	"strings"

	"slipway/backend/session"
)

// Identity is who asks.
type Identity struct {
	Owner  string // the name under which their sessions are kept
	Role   session.Role
	Client string // fingerprint of the computer; empty: a program of the agent's own person
	From   string // address, for the log
}

// Inner is what a gate asks of an agent that those who pass cannot ask.
type Inner interface {
	// FindImage describes an image by whatever it can be called; engine_image_not-found.
	FindImage(ctx context.Context, ref string) (session.Image, error)
	// Allowance is the most that somebody may hold.
	Allowance(owner string) session.Allowance
	// Arrivals takes the images that a person brings.
	Arrivals(owner string) session.ImageArrivals
	// MPSForUsers reports whether the machine's owner lets users share devices through MPS.
	MPSForUsers() bool
}

// Gate stands before an agent. Its methods are safe for concurrent use.
type Gate struct {
	agent session.Agent
	inner Inner
	audit *Audit
}

// New returns a gate before an agent that writes what is done to audit. Only admins reach what the agent has for
// admins, if anything.
func New(agent session.Agent, inner Inner, audit *Audit) *Gate {
	return &Gate{agent: agent, inner: inner, audit: audit}
}

// As returns the agent as somebody may see it.
func (g *Gate) As(who Identity) session.Agent {
	v := &view{audit: g.audit, person: person{agent: g.agent, inner: g.inner, who: who,
		all: who.Role == session.RoleAdmin}}
	return session.AgentOf(v, v)
}

// view is the agent as one identity sees it. It embeds no agent, so that a new method of agents does not compile until
// somebody has said who may call it.
type view struct {
	audit *Audit
	person
}

// person is who asks, and the agent that they ask. Its methods are the rules of what they may see and ask for.
type person struct {
	agent session.Agent
	inner Inner
	who   Identity
	all   bool // they see everything
}

// own fails for a session that is not shown to whoever asks, as it does for one that there is not.
func (v person) own(ctx context.Context, id session.ID) error {
	if v.all {
		return nil
	}
	s, err := v.agent.Get(ctx, id)
	if err == nil && s.Owner != v.who.Owner {
		err = session.NoSession(id)
	}
	return err
}

// note writes down what was done to a session and how that ended.
func (v *view) note(method string, id session.ID, target string, err error) {
	v.audit.Note(v.who, Act{Method: method, Session: id, Target: target, Err: err})
}

// did makes a call on what belongs to the caller, and logs it.
func did[T any](ctx context.Context, v *view, method string, place session.Place, target string,
	call func() (T, error)) (result T, err error) {
	if err = v.ownPlace(ctx, place); err == nil {
		result, err = call()
	}
	v.note(method, place.Session, target, err)
	return result, err
}

// asked makes a call on what belongs to the caller, and logs it only where that belongs to somebody else or does not
// exist.
func asked[T any](ctx context.Context, v *view, method string, place session.Place, target string,
	call func() (T, error)) (result T, err error) {
	if err = v.ownPlace(ctx, place); err != nil {
		v.note(method, place.Session, target, err)
		return result, err
	}
	return call()
}

// target says for the log what a call was about.
func target(of any) string {
	if list, is := of.([]string); is {
		return strings.Join(list, ",")
	}
	return fmt.Sprint(of)
}

// when names a condition for the log where it holds.
func when(holds bool, name string) string {
	if holds {
		return name
	}
	return ""
}

// none is the result of a call that has none.
type none struct{}

func only(err error) (none, error) { return none{}, err }

// administered makes a call that is only for admins. The log gets what it changes, and who was refused.
func administered[T any](v *view, method, target string, changes bool,
	call func(session.Admin) (T, error)) (result T, err error) {
	switch {
	case !v.all:
		err = session.NewError(session.CodeAgentForbidden, "Only an admin of the agent may do that.",
			"Ask one of its admins.")
	case v.agent.Admin == nil:
		err = session.NewError(session.CodeAgentUnsupported, "This agent cannot be administered remotely.",
			"Do it on its own machine.")
	default:
		result, err = call(v.agent.Admin)
	}
	if changes || !v.all {
		v.audit.Note(v.who, Act{Method: method, Target: target, Err: err, Security: v.all})
	}
	return result, err
}

// ownFolder fails for a folder that is not shown to whoever asks, as it does for one that there is not.
func (v person) ownFolder(ctx context.Context, id session.FolderID) error {
	if v.all {
		return nil
	}
	f, err := v.agent.GetFolder(ctx, id)
	if err == nil && f.Owner != v.who.Owner {
		err = session.NoFolder(string(id))
	}
	return err
}

// ownPlace fails for a place that is another's. One that names a folder and a session must be theirs in both.
func (v person) ownPlace(ctx context.Context, place session.Place) error {
	if place.Folder != "" {
		if err := v.ownFolder(ctx, place.Folder); err != nil || place.Session == "" {
			return err
		}
	}
	return v.own(ctx, place.Session)
}

// inPlace names a path in a place for the log.
func inPlace(place session.Place, path session.FilePath) string {
	if place.Folder != "" {
		return inFolder(place.Folder) + ": " + string(path)
	}
	return string(path)
}

func inFolder(id session.FolderID) string { return "folder " + string(id) }

func (v *view) ListFolders(ctx context.Context, filter session.FolderFilter) ([]session.Folder, error) {
	if !v.all {
		filter.Owner = v.who.Owner
	}
	return v.agent.ListFolders(ctx, filter)
}

// CreateFolder implements [session.Folders]. Only an admin may link a directory of the machine, or create a folder for
// another owner.
func (v *view) CreateFolder(ctx context.Context, req session.FolderRequest) (session.Folder, error) {
	if req.Owner == "" || !v.all {
		req.Owner = v.who.Owner
	}
	var f session.Folder
	var err error
	if req.Path != "" && !v.all {
		err = session.NewError(session.CodeAgentForbidden, "You may not link a directory of this machine.",
			"Create a folder, or ask an admin.")
	} else {
		f, err = v.agent.CreateFolder(ctx, req)
	}
	v.note("CreateFolder", "", inFolder(f.ID), err)
	return f, err
}
