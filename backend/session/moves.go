package session

import (
	"context"
	"slices"
	"strings"
)

// Moves takes sessions away and back: waiting ones to other agents, running ones to where they can be continued.
//
// Accept, Yield and Release move a waiting session to another agent so that it never runs twice and is never forgotten,
// whatever stops or is cut off in between. First the other agent accepts it: it stores a session of its own, which is
// held. Then the first agent yields, in one transaction. Only after that is the held session released. Whoever finds a
// held session continues by asking the first agent to yield again, since each call may be repeated.
type Moves interface {
	// Accept stores a launch like [Sessions].Launch, in place of the session req.From of another agent. It is held: it
	// does not start before Release.
	//
	//rpc:method name=accept effect=again who=custom
	Accept(ctx context.Context, req LaunchRequest) (Session, error)
	// Yield removes a PENDING session that was never placed and that no other waits for, because the session to of
	// another agent takes its place. It succeeds again for the same to; session_update_conflict otherwise.
	//
	//rpc:method name=yield effect=again who=custom
	Yield(ctx context.Context, id, to ID) error
	// Release lets a held session start.
	//
	//rpc:method name=release effect=again who=owner
	Release(ctx context.Context, id ID) (Session, error)
	// Park starts to end a session as [Session.Parkable] says, and keeps what [Session.Continued] needs: an image of
	// its main kernel, and its home as a folder that is kept for good. It can be repeated. session_update_conflict for
	// another session, engine_create_unsupported where no image can be made of sessions.
	//
	//rpc:method name=park effect=again who=owner
	Park(ctx context.Context, id ID) (Session, error)
}

// Parkable reports whether a session can be ended in such a way that it can be continued: it is RUNNING, interactive
// and of one kernel, and may have mounts.
func (s Session) Parkable() bool {
	return s.Status == Running && s.Spec.Type == Interactive && !s.Spec.Bare() && len(s.Kernels) == 1
}

// TakesHome reports whether a session that is parked leaves a home that has to become a folder.
func (s Session) TakesHome() bool {
	home := s.HomeFolder()
	return s.Parked && home != nil && !s.Spec.KeepsHome() &&
		!slices.ContainsFunc(s.Spec.Mounts, func(m Mount) bool { return MountTarget(m) == Home })
}

// ParkedName names the image of a session that is parked. No other session's image has the name, on any machine. It
// satisfies [CommitNames].
func (s Session) ParkedName() string { return s.ImageName(string(s.ID)) }

// ImageName names an image of a session. It satisfies [CommitNames], and ends with an id that no other image has.
func (s Session) ImageName(id string) string {
	slug := strings.ReplaceAll(s.Name, ".", "-")
	return slug[:min(len(slug), CommitNames.Max-len(id)-1)] + "-" + id
}

// Continuable reports whether a session was parked and its image was made, so that [Session.Continued] can be launched.
func (s Session) Continuable() bool {
	return s.Parked && s.Status.Terminal() && s.EndImage != nil && s.EndImage.State == WorkDone && s.HomeFolder() != nil
}

// Continued is what is launched to continue a parked session: what it was, with its image and its home.
func (s Session) Continued() Spec {
	home := s.HomeFolder()
	spec := s.With(s.EndImage.Ref, Mount{Folder: string(home.Folder), Path: home.Path})
	spec.Agent = s.Agent
	return spec
}

// Inherited is the image of the parked session that this one continues, if it was launched from that, else empty.
func (s Session) Inherited() string {
	if s.From == "" || !CustomizedRef(s.Spec.Image) || !strings.HasSuffix(s.Spec.Image, "-"+string(s.From)) {
		return ""
	}
	return s.Spec.Image
}

// With is what is launched to have the session again with an image of it and a home. What ran once when it was new does
// not run again.
func (s Session) With(image string, home Mount) Spec {
	spec := s.Spec
	spec.Name, spec.Image, spec.Agent, spec.Group, spec.After = s.Name, image, "", "", nil
	spec.Setup, spec.KeepHome = "", nil
	spec.Mounts = slices.DeleteFunc(slices.Clone(spec.Mounts), func(m Mount) bool { return MountTarget(m) == Home })
	home.Target = Home
	spec.Mounts = append(spec.Mounts, home)
	return spec
}
