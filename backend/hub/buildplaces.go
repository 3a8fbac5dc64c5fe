package hub

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"sync"

	"slipway/backend/session"
	"slipway/gpu"
)

// BuildChoice is a place where the image of a project can be built for another machine, and what that costs.
type BuildChoice struct {
	Where BuildPlace      `json:"where"`
	Why   *session.Phrase `json:"why,omitempty"` // it cannot be built there; absent: it can
	// Bytes are those of the images that it extends and that the machine lacks, which are sent there. What a build here
	// adds comes to it.
	Bytes gpu.Bytes `json:"bytes"`
	More  bool      `json:"more"` // the size of one is unknown
	// Seconds is how long that takes at the rate of the last large copy to the machine; absent: there was none.
	Seconds *float64 `json:"seconds,omitempty"`
}

// BuildChoices says where the image of a project can be built, and what that costs. There is no choice for a project of
// this computer's agent, and for one that uses an image as it is.
func (p *projects) BuildChoices(ctx context.Context, folder, agent string,
	req session.ProjectRequest) ([]BuildChoice, error) {
	m, f, choice, err := p.project(ctx, folder, agent, req)
	if err != nil || m.Local {
		return nil, err
	}
	machine, unknown := m.Agent.Machine(ctx)
	found, err := m.Agent.ReadProject(ctx, f.ID, choice)
	if err := cmp.Or(unknown, err); err != nil || found.Dockerfile == "" {
		return nil, err
	}
	there := BuildChoice{Where: BuildThere}
	switch {
	case slices.Contains(machine.Lacks, session.FeatureBuild):
		there.Why = new(session.FeatureBuild.Missing())
	case machine.Role == session.RoleUser:
		there.Why = new(session.Say("buildAdmin"))
	}
	through := BuildChoice{Where: BuildThrough, Why: there.Why}
	through.Bytes, through.More = p.lacking(ctx, m, found.Bases)
	if near, err := p.memberOrLocal(""); err == nil && through.Bytes > 0 {
		through.Seconds = p.transfers.rates.seconds(near, m, int64(through.Bytes))
	}
	here := through
	here.Where, here.Why = BuildHere, nil
	if _, err := p.here(ctx, m, f, choice, found); err != nil {
		problem := session.AsError(err, session.CodeOperationFailed)
		here.Why = new(append(slices.Clone(problem.Said), session.Phrase{Text: problem.Message})[0])
	}
	return []BuildChoice{there, through, here}, nil
}

// lacking returns the size of those images that a machine lacks, as far as it is known.
func (p *projects) lacking(ctx context.Context, m *member, images []string) (size gpu.Bytes, more bool) {
	families := p.images.Environments(ctx)
	for _, image := range images {
		var known EnvironmentVersion
		for _, family := range families {
			for _, v := range family.Versions {
				if session.SameImage(v.Image, image) {
					known = v
				}
			}
		}
		if !slices.Contains(known.Agents, m.Name()) {
			size, more = size+known.Size, more || known.Size == 0
		}
	}
	return size, more
}

// buildSite is where a project is built.
type buildSite struct {
	*member
	folder  session.FolderID
	project session.Project
}

// here finds the project of another machine's folder in the folder of that name on this computer, or says why its image
// cannot be built here. Both have the same files, so the machine knows the image by the name that it gets there.
func (p *projects) here(ctx context.Context, far *member, f session.Folder, choice session.ProjectRequest,
	there session.Project) (site buildSite, err error) {
	refuse := func(code session.Code, say string, holes ...session.Phrase) (buildSite, error) {
		return buildSite{}, session.Because(code, session.Say(say, holes...), session.Say(say+"Hint")).Failure(nil)
	}
	near, err := p.memberOrLocal("")
	if err != nil {
		return site, err
	}
	machine, unknown := near.Agent.Machine(ctx)
	target, err := far.Agent.Machine(ctx)
	if err := cmp.Or(unknown, err); err != nil {
		return site, err
	}
	name := session.Fill("name", f.Name)
	switch {
	case slices.Contains(machine.Lacks, session.FeatureBuild) || machine.Engine == "sim" && target.Engine != "sim":
		return refuse(session.CodeEngineUnsupported, "buildHereLacks")
	case machine.Arch != target.Arch:
		return refuse(session.CodeEngineUnsupported, "buildHereArch", session.Fill("here", machine.Arch),
			session.Fill("there", target.Arch))
	case locked(p.shared, func() bool { return p.personAt(far, f.Owner) != "" }):
		return refuse(session.CodeAgentForbidden, "buildHereOwner", name, session.Fill("owner", f.Owner))
	}
	_, linked, err := p.findFolder(ctx, f.Name, near.Name())
	switch {
	case session.CodeOf(err) == session.CodeFolderNotFound:
		return refuse(session.CodeFolderNotFound, "buildHereFolder", name)
	case err != nil:
		return site, err
	}
	site = buildSite{member: near, folder: linked.ID}
	if site.project, err = near.Agent.ReadProject(ctx, linked.ID, choice); err != nil {
		return site, err
	}
	if session.BroughtRef(f.Owner, site.project.Image) != there.Image {
		return refuse(session.CodeFileChanged, "buildHereDiffers", name)
	}
	return site, nil
}

// offlineLog finds what programs print in a build without access to the internet.
var offlineLog = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)could not resolve|failure resolving|name resolution|name or service not known|` +
		`network is unreachable|failed to establish a new connection|no such host`)
})

// failure is why a work failed. Where a build on another machine seems to have had no internet, it names the other
// places.
func (f *following) failure(now session.ImageWork) error {
	failure := now.Error.Failure(nil)
	if now.Kind == session.WorkBuild && !f.member.Local && (failure.Code == session.CodePullUnavailable ||
		now.Build != nil && offlineLog().MatchString(now.Build.Log)) {
		hint := session.Say("buildOfflineHint", session.Fill(session.OnMachine, f.member.Name()))
		failure.Hint, failure.Advice = hint.English(), []session.Phrase{hint}
	}
	return failure
}
