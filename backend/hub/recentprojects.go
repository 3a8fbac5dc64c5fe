package hub

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"slipway/backend/project"
	"slipway/backend/session"
)

// RecentProject is a project that was opened to be used. Agent, folder and path say which one it is.
type RecentProject struct {
	ID     string           `json:"id"`
	Name   string           `json:"name"`  // of its folder when it was opened, and the path in that
	Agent  string           `json:"agent"` // whose machine has the folder
	Folder session.FolderID `json:"folder"`
	session.ProjectRequest
	// Address is that of the repository that it was cloned from, without a password; empty: none
	Address  string    `json:"address,omitempty"`
	Image    string    `json:"image,omitempty"` // that a session was last launched with; empty: none yet
	Pinned   bool      `json:"pinned"`
	OpenedAt time.Time `json:"openedAt"`
}

// ProjectOpening says which project of a folder is opened.
type ProjectOpening struct {
	session.ProjectRequest
	Address string `json:"address,omitempty"` // of its repository; empty: unchanged
	Image   string `json:"image,omitempty"`   // that a session is launched with now; empty: none
}

// ProjectPin pins a remembered project, or unpins it.
type ProjectPin struct {
	Pinned bool `json:"pinned"`
}

const projectsKey = "hub.projects"

// OpenProject remembers a project that is opened to be used. The answer has the image that its sessions used last,
// unless another file or environment is chosen now.
func (p *projects) OpenProject(ctx context.Context, folder, agent string, req ProjectOpening) (RecentProject, error) {
	if req.Address != "" {
		if _, err := project.ParseRepository(req.Address); err != nil {
			return RecentProject{}, err
		}
	}
	m, f, asked, err := p.project(ctx, folder, agent, req.ProjectRequest)
	if err != nil {
		return RecentProject{}, err
	}
	asked.Path = path.Clean("/" + asked.Path)[1:]
	opened := RecentProject{ID: newID(), Name: path.Join(f.Name, asked.Path), Agent: m.Name(), Folder: f.ID,
		ProjectRequest: asked, Address: req.Address, Image: req.Image, OpenedAt: p.now()}
	err = p.person.changeProjects(func(known []RecentProject) ([]RecentProject, error) {
		i := slices.IndexFunc(known, func(one RecentProject) bool {
			return one.Agent == opened.Agent && one.Folder == opened.Folder && one.Path == opened.Path
		})
		if i >= 0 {
			before := known[i]
			opened.ID, opened.Pinned, opened.Address = before.ID, before.Pinned, cmp.Or(opened.Address, before.Address)
			if before.ProjectRequest == opened.ProjectRequest {
				opened.Image = cmp.Or(opened.Image, before.Image)
			}
			known = slices.Delete(known, i, i+1)
		}
		return append([]RecentProject{opened}, known...), nil
	})
	return opened, err
}

// Projects returns the remembered projects, the one that was opened last first.
func (ps *person) Projects() []RecentProject {
	return locked(ps.shared, func() []RecentProject { return append([]RecentProject{}, ps.projects...) })
}

// PinProject pins or unpins a remembered project. It fails with recipe_read_not-found.
func (ps *person) PinProject(id string, req ProjectPin) (RecentProject, error) {
	var pinned RecentProject
	err := ps.changeProjects(func(known []RecentProject) ([]RecentProject, error) {
		i, err := findProject(known, id)
		if err == nil {
			known[i].Pinned = req.Pinned
			pinned = known[i]
		}
		return known, err
	})
	return pinned, err
}

// ForgetProject forgets a project. Its folder stays. It fails with recipe_read_not-found.
func (ps *person) ForgetProject(id string) error {
	return ps.changeProjects(func(known []RecentProject) ([]RecentProject, error) {
		i, err := findProject(known, id)
		if err != nil {
			return nil, err
		}
		return slices.Delete(known, i, i+1), nil
	})
}

func findProject(known []RecentProject, id string) (int, error) {
	i := slices.IndexFunc(known, func(one RecentProject) bool { return one.ID == id })
	if i < 0 {
		return i, session.NewError(session.CodeRecipeNotFound, fmt.Sprintf("No project %q is remembered.", id),
			"It may have been removed; look at the list again.")
	}
	return i, nil
}

func (ps *person) changeProjects(change func([]RecentProject) ([]RecentProject, error)) error {
	ps.saving.Lock()
	defer ps.saving.Unlock()
	return ps.saveProjects(change)
}

// saveProjects is changeProjects for a caller that holds saving.
func (ps *person) saveProjects(change func([]RecentProject) ([]RecentProject, error)) error {
	return changeList(ps, projectsKey, &ps.projects, func(known []RecentProject) ([]RecentProject, error) {
		changed, err := change(known)
		return pruneProjects(changed), err
	}, func() Event { return Event{Projects: new(slices.Clone(ps.projects))} })
}

func pruneProjects(known []RecentProject) []RecentProject {
	return prune(known, func(one RecentProject) bool { return one.Pinned })
}

// loadProjects drops entries without an id, and duplicates.
func (ps *person) loadProjects() {
	known := read[[]RecentProject](ps.shared, projectsKey, "the remembered projects cannot be read; starting with none")
	ps.projects = pruneProjects(unique(known, func(one RecentProject) string { return one.ID }))
}
