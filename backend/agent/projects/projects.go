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
	BuildImage(ctx context.Context, b images.Building) (session.ImageWork, error)
}

// Projects implements [session.Projects].
type Projects struct {
	Folders Folders
	Images  Images
}

// labels describe the image of a project, in place of what its base says of itself.
func labels(project string) map[string]string {
	return map[string]string{"slipway.image.project": project, "slipway.title": "Project " + project,
		"slipway.summary": "The image of the project " + project + "."}
}

// read calls fn with the plan of a project, while its files can be read.
func (p Projects) read(ctx context.Context, id session.FolderID, req session.ProjectRequest,
	fn func(session.Folder, *project.Plan) error) error {
	folder, tree, closer, err := p.Folders.Content(id)
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
	others, err := p.Folders.ListFolders(ctx, session.FolderFilter{Owner: folder.Owner})
	if err != nil {
		return err
	}
	plan, err := project.Read(ctx, tree, project.Place{Folder: folder, Path: dir, Others: others}, req)
	if err != nil {
		return err
	}
	return fn(folder, plan)
}

func (p Projects) ReadProject(ctx context.Context, id session.FolderID,
	req session.ProjectRequest) (found session.Project, err error) {
	err = p.read(ctx, id, req, func(_ session.Folder, plan *project.Plan) (err error) {
		found = plan.Project
		if session.ValidImage(found.Image) {
			found.Present, err = p.Images.Present(ctx, found.Image)
		}
		return err
	})
	return found, err
}

// BuildProject implements [session.Projects]. The build reads the files after this has returned, from its own opening.
func (p Projects) BuildProject(ctx context.Context, id session.FolderID,
	req session.ProjectBuild) (work session.ImageWork, err error) {
	err = p.read(ctx, id, req.ProjectRequest, func(folder session.Folder, plan *project.Plan) (err error) {
		if plan.Dockerfile == "" {
			return session.NewError(session.CodeImageInvalid,
				"The project "+folder.Name+" has nothing to build: it uses the image "+session.Clip(plan.Image)+".",
				"Launch a session with that image.")
		}
		work, err = p.Images.BuildImage(ctx, images.Building{Owner: folder.Owner, Bases: plan.Bases,
			Build: engine.Build{Ref: plan.Image, Target: plan.Target, Args: plan.Args,
				Dockerfile: project.Dockerfile, Labels: labels(folder.Name), Secrets: req.Secrets, Logins: req.Logins,
				Context: func(ctx context.Context, to io.Writer) error {
					return p.context(ctx, id, req.ProjectRequest, plan.Image, to)
				}}})
		return err
	})
	return work, err
}

// context writes what an image is built from, unless the files have changed, and with them the name of the image.
func (p Projects) context(ctx context.Context, id session.FolderID, req session.ProjectRequest, image string,
	to io.Writer) error {
	return p.read(ctx, id, req, func(_ session.Folder, plan *project.Plan) error {
		if plan.Image != image {
			return session.NewError(session.CodeFileChanged, "The project was changed when its build began.",
				"Build it again.")
		}
		return plan.Context(ctx, to)
	})
}
