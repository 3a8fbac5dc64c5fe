package hub

import (
	"context"
	"fmt"
	"slices"
	"time"

	"slipway/backend/lend"
	"slipway/backend/project"
	"slipway/backend/session"
)

// Cloner clones a repository into a new directory below parent, or of the person's home, with the person's own git. It
// asks through work, calls tell with what git prints, and leaves nothing if it fails.
type Cloner interface {
	// HasGit reports whether there is a git on this computer.
	HasGit() bool
	Clone(ctx context.Context, work *Work, repository project.Repository, parent string,
		tell func(line string)) (dir string, err error)
}

// projects clones projects, reads those in folders, builds their images and remembers them.
type projects struct {
	*folders
	person    *person
	images    *images
	transfers *transfers
	cloner    Cloner    // nil: sessions of this computer see none of its files
	dial      lend.Dial // with which the steps of builds reach the internet through this computer; nil: [lend.Outward]
}

// ProjectCloning asks for a git repository to become a folder: on this computer, a clone that its sessions see; on
// another machine, a copy of that, or a clone by that machine's git where this computer has none or its sessions are
// simulated.
type ProjectCloning struct {
	Address   string `json:"address"`             // URL[@REF][#SUBDIRECTORY] of the repository, without a password
	Directory string `json:"directory,omitempty"` // of this computer, for the clone; empty: the person's home
	Agent     string `json:"agent,omitempty"`     // whose sessions are to see the folder; empty: this computer's
}

const cloneStep = "clone"

// CloneProject starts to clone a repository. The operation names the folder that it makes.
func (p *projects) CloneProject(ctx context.Context, req ProjectCloning) (Operation, error) {
	repository, err := project.ParseRepository(req.Address)
	if err != nil {
		return Operation{}, err
	}
	far, err := p.memberOrLocal(req.Agent)
	if err != nil {
		return Operation{}, err
	}
	name := project.FolderName(repository.Name)
	holders, run := []*member{far}, func(ctx context.Context, work *Work) error {
		return p.cloneThere(ctx, work, repository, name, far)
	}
	if far.Local || p.cloner != nil && p.cloner.HasGit() {
		if p.cloner == nil {
			return Operation{}, session.NewError(session.CodeEngineUnsupported,
				"Sessions of this computer are simulated and see none of its files.", "Start Slipway with Docker.")
		}
		near, err := p.memberOrLocal("")
		if err != nil {
			return Operation{}, err
		}
		holders, run = slices.Compact([]*member{near, far}), func(ctx context.Context, work *Work) error {
			return p.clone(ctx, work, repository, req.Directory, name, near, far)
		}
	}
	for _, m := range holders {
		switch _, _, err := p.findFolder(ctx, name, m.Name()); {
		case err == nil, session.CodeOf(err) == session.CodeFolderConflict:
			return Operation{}, session.NewError(session.CodeFolderExists,
				fmt.Sprintf("There is a folder named %s on %s.", name, m.Name()), "Use it, or rename it.")
		case session.CodeOf(err) != session.CodeFolderNotFound:
			return Operation{}, err
		}
	}
	return p.operations.startOn("clone "+name, ProjectClone, repository.Address,
		func(ctx context.Context, work *Work) error {
			work.Concerns(far.Name())
			work.change(func(one *operation) { one.Folder = name })
			return run(ctx, work)
		})
}

func (p *projects) clone(ctx context.Context, work *Work, repository project.Repository, parent, name string,
	near, far *member) error {
	var dir string
	err := work.Do(cloneStep, "Clone the repository", func() (_ string, err error) {
		dir, err = p.cloner.Clone(ctx, work, repository, parent, func(line string) {
			work.Tell(Step{Name: cloneStep, State: StepRunning, Detail: line})
		})
		return dir, err
	})
	if err != nil {
		return err
	}
	var folder session.Folder
	err = work.Do("link", "Make it a folder", func() (_ string, err error) {
		folder, err = p.CreateFolder(ctx, near.Name(), session.FolderRequest{Name: name, Path: dir})
		return name, err
	})
	if err != nil || near == far {
		return err
	}
	c := &fileCopy{transfers: p.transfers, work: work, slots: make(chan struct{}, copiesAtOnce),
		from: copyEnd{near, session.Place{Folder: folder.ID}}, to: copyEnd{member: far},
		creates: folderCreation{FolderRequest: session.FolderRequest{Name: name}}}
	return c.run(ctx)
}

// ReadProject says what a project in a folder asks for. Without an environment in the request, it is the person's
// first with Jupyter, one on the machine rather than another.
func (p *projects) ReadProject(ctx context.Context, folder, agent string,
	req session.ProjectRequest) (session.Project, error) {
	m, f, req, err := p.project(ctx, folder, agent, req)
	if err != nil {
		return session.Project{}, err
	}
	return m.Agent.ReadProject(ctx, f.ID, req)
}

// BuildPlace is where the image of a project is built.
type BuildPlace string

// The places of builds.
const (
	BuildThere   BuildPlace = ""        // on the machine, with its own connection to the internet
	BuildThrough BuildPlace = "through" // on the machine, whose steps reach the internet through this computer
	BuildHere    BuildPlace = "here"    // on this computer, which then sends the layers that the machine lacks
)

// ProjectBuilding asks for the image of a project.
type ProjectBuilding struct {
	session.ProjectRequest
	// Secrets are those of [session.Project.Secrets] that the build may read. An agent gets the value of no other.
	Secrets []string   `json:"secrets,omitempty"`
	Where   BuildPlace `json:"where,omitempty"`
}

// BuildProject starts to build the image of a project in a folder.
func (p *projects) BuildProject(ctx context.Context, folder, agent string, req ProjectBuilding) (Operation, error) {
	m, f, choice, err := p.project(ctx, folder, agent, req.ProjectRequest)
	if err != nil {
		return Operation{}, err
	}
	site := buildSite{member: m, folder: f.ID}
	if site.project, err = m.Agent.ReadProject(ctx, f.ID, choice); err != nil {
		return Operation{}, err
	}
	switch {
	case !slices.Contains([]BuildPlace{BuildThere, BuildThrough, BuildHere}, req.Where):
		err = wrongField(session.CodeRequestInvalid, "where", session.KindInvalid,
			fmt.Sprintf("Unknown place %q.", session.Clip(string(req.Where))), "Choose through or here, or none.")
	case req.Where == BuildHere && !m.Local:
		site, err = p.here(ctx, m, f, choice, site.project)
	}
	if err != nil {
		return Operation{}, err
	}
	build := session.ProjectBuild{ProjectRequest: choice}
	if build.Secrets, build.Logins, err = p.images.secrets.forBuild(site.project, req.Secrets); err != nil {
		return Operation{}, err
	}
	return p.operations.start(ImageBuild, subjectAt(f.Name, m), func(ctx context.Context, work *Work) error {
		work.Concerns(m.Name())
		begin := func(ctx context.Context) (session.ImageWork, error) {
			return site.Agent.BuildProject(ctx, site.folder, build)
		}
		if req.Where == BuildThrough && !m.Local {
			if err := p.bring(ctx, work, site.project.Bases, m); err != nil {
				return err
			}
			lent, end := p.through(m, f.ID, build)
			defer end()
			begin = lent
		}
		work.Begin("build", "Build the image")
		builds := &following{retries{work: work, step: "build"}, site.member}
		if err := builds.run(ctx, begin); err != nil || site.member == m {
			return err
		}
		s := &sending{retries: retries{work: work, step: "send"}, image: site.project.Image, from: site.member, to: m}
		return s.run(ctx)
	})
}

func (p *projects) project(ctx context.Context, folder, agent string,
	req session.ProjectRequest) (*member, session.Folder, session.ProjectRequest, error) {
	m, f, err := p.findFolder(ctx, folder, agent)
	if err == nil && req.Environment == "" {
		req.Environment = p.environment(ctx, m)
	}
	return m, f, req, err
}

// environment returns the first image with Jupyter, of those on the machine if there is one; "" without any.
func (p *projects) environment(ctx context.Context, m *member) (image string) {
	for _, family := range p.images.Environments(ctx) {
		for _, v := range family.Versions {
			switch {
			case v.Jupyter == "" || v.Custom != nil:
			case slices.Contains(v.Agents, m.Name()):
				return v.Image
			case image == "":
				image = v.Image
			}
		}
	}
	return image
}

// showBuild adds the steps of a build to its operation.
func (f *following) showBuild(now session.Build) {
	steps := make([]Step, len(now.Steps))
	for i, one := range now.Steps {
		step := Step{Name: fmt.Sprintf("build-%d", i), Title: one.Name, State: StepOK, StartedAt: one.StartedAt,
			EndedAt: one.EndedAt}
		switch {
		case one.Cached:
			step.State, step.Detail = StepSkipped, "was built before"
		case one.State == session.WorkRunning:
			step.State = StepRunning
		case one.State == session.WorkFailed:
			step.State = StepFailed
		case one.State == session.WorkCancelled:
			step.State = StepSkipped
		case one.StartedAt != nil && one.EndedAt != nil:
			step.Detail = one.EndedAt.Sub(*one.StartedAt).Round(100 * time.Millisecond).String()
		}
		steps[i] = step
	}
	f.work.Shows(steps, now.Log)
}
