package hub

import (
	"context"
	"fmt"
	"slices"
	"time"

	"slipway/backend/session"
)

// projects reads projects in folders and builds their images.
type projects struct {
	*folders
	images *images
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

// BuildProject starts to build the image of a project in a folder.
func (p *projects) BuildProject(ctx context.Context, folder, agent string,
	req session.ProjectRequest) (Operation, error) {
	m, f, req, err := p.project(ctx, folder, agent, req)
	if err != nil {
		return Operation{}, err
	}
	found, err := m.Agent.ReadProject(ctx, f.ID, req)
	if err != nil {
		return Operation{}, err
	}
	build := session.ProjectBuild{ProjectRequest: req}
	if len(found.Bases) > 0 {
		if build.Login, err = p.images.secrets.loginFor(found.Bases[0]); err != nil {
			return Operation{}, err
		}
	}
	return p.operations.start(ImageBuild, subjectAt(f.Name, m), func(ctx context.Context, work *Work) error {
		work.Concerns(m.Name())
		work.Begin("build", "Build the image")
		following := &following{retries{work: work, step: "build"}, m}
		return following.run(ctx, func(ctx context.Context) (session.ImageWork, error) {
			return m.Agent.BuildProject(ctx, f.ID, build)
		})
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
