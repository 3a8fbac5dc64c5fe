// Package projects reads projects in folders and builds their images.
package projects

import (
	"context"
	"io"
	"io/fs"
	"path"

	"slipway/backend/agent/images"
	"slipway/backend/engine"
	"slipway/backend/project"
	"slipway/backend/session"
)

// Folders opens what folders hold.
type Folders interface {
	// Content opens a folder for reading. The caller closes it.
	Content(id session.FolderID) (session.Folder, fs.FS, io.Closer, error)
	ListFolders(ctx context.Context, filter session.FolderFilter) ([]session.Folder, error)
}

// Images builds images.
type Images interface {
	Present(ctx context.Context, ref string) (bool, error)
	// FindImage fails with engine_image_not-found.
	FindImage(ctx context.Context, ref string) (session.Image, error)
	BuildImage(ctx context.Context, b images.Building) (session.ImageWork, error)
}

// Projects implements what [session.Projects] does with projects that are there.
type Projects struct {
	folders Folders
	images  Images
	devices func() bool
	loans   loans
}

// New returns the projects in the folders of a machine. devices reports whether its sessions can get a device.
func New(folders Folders, images Images, devices func() bool) *Projects {
	return &Projects{folders: folders, images: images, devices: devices}
}

// labels describe the image of a project, in place of what its base says of itself.
func labels(project string) map[string]string {
	return map[string]string{"slipway.image.project": project, "slipway.title": "Project " + project,
		"slipway.summary": "The image of the project " + project + "."}
}

// read calls fn with the plan of a project, while its files can be read.
func (p *Projects) read(ctx context.Context, id session.FolderID, req session.ProjectRequest,
	fn func(session.Folder, *project.Plan) error) error {
	folder, tree, closer, err := p.folders.Content(id)
	if err != nil {
		return err
	}
	defer closer.Close()
	dir := path.Clean("/" + req.Path)[1:]
	if dir != "" {
		if info, err := fs.Stat(tree, dir); err != nil || !info.IsDir() {
			return session.NewError(session.CodeFileNotFound,
				"The folder "+folder.Name+" has no directory "+session.Clip(req.Path)+".", "Choose one that it has.")
		}
		if tree, err = fs.Sub(tree, dir); err != nil {
			return session.WrapError(err, session.CodeFileInvalid, "The project's directory cannot be opened.", "")
		}
	}
	others, err := p.folders.ListFolders(ctx, session.FolderFilter{Owner: folder.Owner})
	if err != nil {
		return err
	}
	labels := func(ref string) map[string]string {
		image, _ := p.images.FindImage(ctx, ref) // one that is unknown has none
		return image.Labels
	}
	plan, err := project.Read(ctx, tree, project.Place{Folder: folder, Path: dir, Others: others,
		Devices: p.devices(), Labels: labels}, req)
	if err != nil {
		return err
	}
	return fn(folder, plan)
}

func (p *Projects) ReadProject(ctx context.Context, id session.FolderID,
	req session.ProjectRequest) (found session.Project, err error) {
	err = p.read(ctx, id, req, func(_ session.Folder, plan *project.Plan) (err error) {
		found = plan.Project
		if session.ValidImage(found.Image) {
			found.Present, err = p.images.Present(ctx, found.Image)
		}
		return err
	})
	return found, err
}

// BuildProject implements [session.Projects]. The build reads the files after this has returned, from its own opening.
func (p *Projects) BuildProject(ctx context.Context, id session.FolderID,
	req session.ProjectBuild) (work session.ImageWork, err error) {
	err = p.read(ctx, id, req.ProjectRequest, func(folder session.Folder, plan *project.Plan) (err error) {
		if plan.Dockerfile == "" {
			return session.NewError(session.CodeImageInvalid,
				"The project "+folder.Name+" has nothing to build: it uses the image "+session.Clip(plan.Image)+".",
				"Launch a session with that image.")
		}
		building := images.Building{Owner: folder.Owner, Bases: plan.Bases,
			Build: engine.Build{Ref: plan.Image, Target: plan.Target, Args: plan.Args,
				Dockerfile: project.Dockerfile, Labels: labels(folder.Name), Secrets: req.Secrets, Logins: req.Logins,
				Context: func(ctx context.Context, to io.Writer) error {
					return p.context(ctx, id, req.ProjectRequest, plan.Image, to)
				}}}
		if req.Proxy != "" {
			if plan.DeclaresProxy() {
				return session.NewError(session.CodeImageInvalid,
					"The Dockerfile has an ARG for the address of a proxy, which would be stored in the image.",
					"Remove that line: steps get the address without it.")
			}
			building.Begin = func(b *engine.Build) (func(), error) { return p.loans.begin(id, req.Proxy, b) }
		}
		work, err = p.images.BuildImage(ctx, building)
		return err
	})
	return work, err
}

// context writes what an image is built from, unless the files have changed, and with them the name of the image.
func (p *Projects) context(ctx context.Context, id session.FolderID, req session.ProjectRequest, image string,
	to io.Writer) error {
	return p.read(ctx, id, req, func(_ session.Folder, plan *project.Plan) error {
		if plan.Image != image {
			return session.NewError(session.CodeFileChanged, "The project was changed when its build began.",
				"Build it again.")
		}
		return plan.Context(ctx, to)
	})
}
