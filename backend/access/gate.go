// Package access limits what each person can see and do on an agent, and logs what they do.
//
// A [Gate] protects one agent. [Gate.As] returns the agent as one identity may use it. An admin sees everything and may
// launch for others. A user has only their own sessions: those of other owners are reported as not found, so that their
// existence does not leak. Amounts include what others use, without their names.
//
// Images that were made from sessions or uploaded belong to one person, by their names under slipway-custom/. Everybody
// may use the others, and only an admin replaces or removes them. Images that were pulled with the agent's registry
// logins are for those who may use the logins. Users may mount and list only the directories of the machine that were
// opened to them.
package access

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"

	"slipway/backend/session"
)

// Identity identifies a caller.
type Identity struct {
	Owner  string // owner of their sessions
	Role   session.Role
	Client string // fingerprint of the computer; empty: a program of the agent's own user
	From   string // address, for the log
}

// Inner has the methods of an agent that only a gate calls.
type Inner interface {
	// FindImage describes an image by any of its names; engine_image_not-found.
	FindImage(ctx context.Context, ref string) (session.Image, error)
	// Allowance returns the limits of a person.
	Allowance(owner string) session.Allowance
	// Arrivals receives the image uploads of a person.
	Arrivals(owner string) session.ImageArrivals
	// MPSForUsers reports whether users may use MPS.
	MPSForUsers() bool
	// AdminSessions says who may launch administrator sessions.
	AdminSessions() session.AdminSessions
}

// Gate protects an agent. Its methods are safe for concurrent use.
type Gate struct {
	agent session.Agent
	inner Inner
	audit *Audit
}

// New returns a gate that logs to audit.
func New(agent session.Agent, inner Inner, audit *Audit) *Gate {
	return &Gate{agent: agent, inner: inner, audit: audit}
}

// As returns the agent as a caller may use it.
func (g *Gate) As(who Identity) session.Agent {
	v := &view{audit: g.audit, person: person{agent: g.agent, inner: g.inner, who: who,
		all: who.Role == session.RoleAdmin}}
	return session.AgentOf(v, v)
}

// view is the agent for one caller. It does not embed the agent, so that a new method does not compile without a rule
// about who may call it.
type view struct {
	audit *Audit
	person
}

// person is a caller and the agent. Its methods are the rules.
type person struct {
	agent session.Agent
	inner Inner
	who   Identity
	all   bool // they may see everything
}

// own fails for sessions of others as it does for those that do not exist.
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

// target formats the subject of a call for the log.
func target(of any) string {
	if list, is := of.([]string); is {
		return strings.Join(list, ",")
	}
	return fmt.Sprint(of)
}

func when(holds bool, name string) string {
	if holds {
		return name
	}
	return ""
}

type none struct{}

func only(err error) (none, error) { return none{}, err }

// ordered is did for what only admins may do with what is theirs.
func ordered[T any](ctx context.Context, v *view, method string, place session.Place, target string,
	call func() (T, error)) (T, error) {
	return did(ctx, v, method, place, target, func() (result T, err error) {
		if !v.all {
			return result, onlyAdmins()
		}
		return call()
	})
}

func onlyAdmins() error {
	return session.NewError(session.CodeAgentForbidden, "Only an admin of the agent may do that.",
		"Ask one of its admins.")
}

// administered makes a call for an admin. Changes and refusals are logged.
func administered[T any](v *view, method, target string, changes bool,
	call func(session.Admin) (T, error)) (result T, err error) {
	switch {
	case !v.all:
		err = onlyAdmins()
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

// ownFolder is like own for folders.
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

// ownPlace fails unless both the folder and the session that a place names belong to the caller.
func (v person) ownPlace(ctx context.Context, place session.Place) error {
	if place.Folder != "" {
		if err := v.ownFolder(ctx, place.Folder); err != nil || place.Session == "" {
			return err
		}
	}
	return v.own(ctx, place.Session)
}

// inPlace formats a path for the log.
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
func (v *view) CreateFolder(ctx context.Context, req session.FolderRequest) (f session.Folder, err error) {
	if req.Owner == "" || !v.all {
		req.Owner = v.who.Owner
	}
	if req.Path != "" && !v.all {
		err = session.NewError(session.CodeAgentForbidden, "You may not link a directory of this machine.",
			"Create a folder, or ask an admin.")
	} else {
		f, err = v.agent.CreateFolder(ctx, req)
	}
	v.note("CreateFolder", "", inFolder(f.ID), err)
	return f, err
}

// CloneFolder implements [session.Projects]. The log has the host of the repository and nothing else of its address.
func (v *view) CloneFolder(ctx context.Context, req session.CloneRequest) (stream io.ReadWriteCloser, err error) {
	if req.Owner == "" || !v.all {
		req.Owner = v.who.Owner
	}
	stream, err = v.agent.CloneFolder(ctx, req)
	host := ""
	if address, wrong := url.Parse(req.Address); wrong == nil {
		host = address.Hostname()
	}
	v.note("CloneFolder", "", host, err)
	return stream, err
}
