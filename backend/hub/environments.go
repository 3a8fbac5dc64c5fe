package hub

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"slipway/backend/session"
	"slipway/gpu"
)

// Environment is a family of images.
type Environment struct {
	ID       string               `json:"id"`
	Title    string               `json:"title"`
	Icon     string               `json:"icon"`
	Summary  string               `json:"summary"`
	Versions []EnvironmentVersion `json:"versions"`

	Accelerator string    `json:"accelerator,omitempty"` // none, optional or required; empty: none
	MinCPU      int       `json:"minCpu,omitempty"`      // minimum; 0: unknown
	MinMemory   gpu.Bytes `json:"minMemory,omitempty"`
}

// Catalogue is what is offered before anything is installed.
type Catalogue interface {
	// Environments returns the families: Slipway's, with an error, if the user's own file cannot be used.
	Environments() ([]Environment, error)
	// Path is the path of the user's own file.
	Path() string
}

// CatalogueFile returns the path of the user's own catalogue and why it cannot be used, if so.
func (im *images) CatalogueFile() (path string, problem error) {
	if im.catalogue == nil {
		return "", nil
	}
	_, problem = im.catalogue.Environments()
	return im.catalogue.Path(), problem
}

// EnvironmentVersion is one image of a family. Size is its size on disk if it is installed, else an estimate of the
// download; 0 if unknown.
type EnvironmentVersion struct {
	Title     string    `json:"title"`
	Image     string    `json:"image"`
	Installed bool      `json:"installed"`
	Size      gpu.Bytes `json:"size"`
	// Jupyter is lab or notebook if the image has JupyterLab or only Jupyter Notebook, as far as known.
	Jupyter string `json:"jupyter,omitempty"`
	// Custom is set if the image was made from a session. Agents have the image.
	Custom *session.ImageOrigin `json:"custom,omitempty"`
	Agents []string             `json:"agents"`
}

// Environments lists the catalogue and, if an agent answers, every installed image. Installed ones come first.
func (im *images) Environments(ctx context.Context) []Environment {
	images, err := im.Images(ctx, "")
	if err != nil {
		im.log.Warn("the catalogue is shown without installed images", "error", err)
	}
	var families []Environment
	if im.catalogue != nil {
		if families, err = im.catalogue.Environments(); err != nil {
			im.log.Warn("the catalogue of environments is not the person's own", "error", err)
		}
	}
	return mergeEnvironments(families, images)
}

// mergeEnvironments marks what is installed and adds each other installed image to a family of its repository.
func mergeEnvironments(families []Environment, images []Image) []Environment {
	at := map[string]int{} // repository → family
	for i, f := range families {
		for _, v := range f.Versions {
			repository, _ := splitRef(v.Image)
			at[repository] = i
		}
	}
	for _, image := range images {
		for _, ref := range imageNames(image) {
			repository, tag := splitRef(ref)
			family := repository
			if image.Origin != nil { // shown with its base image
				tag = image.Origin.Name
				if base, _ := splitRef(image.Origin.Base); base != "" {
					family = base
				}
			}
			i, ok := at[family]
			if !ok {
				i = len(families)
				at[family] = i
				families = append(families, foundFamily(family, image))
			}
			families[i].install(ref, tag, image)
		}
	}
	for _, f := range families {
		slices.SortStableFunc(f.Versions,
			func(a, b EnvironmentVersion) int { return truth(b.Installed) - truth(a.Installed) })
	}
	slices.SortStableFunc(families, func(a, b Environment) int { return truth(b.installed()) - truth(a.installed()) })
	return families
}

// imageNames returns the references to launch an image by, or its id if it has none.
func imageNames(image Image) []string {
	names := slices.DeleteFunc(slices.Clone(image.Refs), func(ref string) bool {
		return strings.Contains(ref, "<none>") || strings.Contains(ref, "@")
	})
	if len(names) == 0 {
		return []string{cmp.Or(strings.TrimSpace(image.ID), "unknown")}
	}
	return names
}

func (e Environment) installed() bool {
	return slices.ContainsFunc(e.Versions, func(v EnvironmentVersion) bool { return v.Installed })
}

// install marks the version with that reference as installed, or adds it.
func (e *Environment) install(ref, tag string, image Image) {
	for i, v := range e.Versions {
		if session.SameImage(v.Image, ref) {
			e.Versions[i].Installed, e.Versions[i].Size, e.Versions[i].Agents = true, image.Size,
				append(v.Agents, image.Agent)
			return
		}
	}
	e.Versions = append(e.Versions, EnvironmentVersion{Title: tag, Image: ref, Installed: true, Size: image.Size,
		Jupyter: e.jupyterIn(ref, image), Custom: image.Origin, Agents: []string{image.Agent}})
}

// What an image has of Jupyter.
const (
	JupyterLab      = "lab"
	JupyterNotebook = "notebook"
)

// labelJupyter says what an image has of Jupyter: lab, notebook or none.
const labelJupyter = "slipway.jupyter"

// jupyterIn returns what an image that is not in the catalogue has of Jupyter: by its label, by its base in the
// catalogue, or by its name. A wrong guess costs little, because a session's apps are looked for in its container.
func (e *Environment) jupyterIn(ref string, image Image) string {
	switch said := image.Labels[labelJupyter]; said {
	case "":
	case JupyterLab, JupyterNotebook:
		return said
	default:
		return ""
	}
	if image.Origin != nil {
		for _, v := range e.Versions {
			if session.SameImage(v.Image, image.Origin.Base) {
				return v.Jupyter
			}
		}
		ref = image.Origin.Base
	}
	name := strings.ToLower(ref)
	switch {
	case strings.Contains(name, "jupyter"):
		return JupyterLab
	case strings.Contains(name, "notebook"):
		return JupyterNotebook
	}
	return ""
}

// foundFamily returns the family of an image that is not in the catalogue. Labels of the image may describe it.
func foundFamily(repository string, image Image) Environment {
	label := func(name string) string { return strings.TrimSpace(image.Labels[name]) }
	title := cmp.Or(label("slipway.title"), label("org.opencontainers.image.title"),
		strings.TrimPrefix(strings.TrimPrefix(repository, "docker.io/library/"), "docker.io/"))
	if id, ok := strings.CutPrefix(title, "sha256:"); ok {
		title = "Image " + id[:min(12, len(id))]
	}
	return Environment{ID: "image-" + slug(repository), Title: title, Icon: cmp.Or(label("slipway.icon"), "image"),
		Summary: cmp.Or(label("slipway.summary"), label("org.opencontainers.image.description"),
			"An image on this machine.")}
}

func slug(text string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(text)), "-")
}

// splitRef splits a reference as Docker completes it: python:3.12 is docker.io/library/python and 3.12.
func splitRef(ref string) (repository, tag string) {
	if strings.HasPrefix(ref, "sha256:") {
		return ref, ref[:min(len("sha256:")+12, len(ref))]
	}
	repository, tag = ref, "latest"
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		repository, tag = ref[:i], ref[i+1:]
	}
	first, rest, found := strings.Cut(repository, "/")
	switch {
	case !found:
		repository = "docker.io/library/" + repository
	case first == "index.docker.io":
		repository = "docker.io/" + rest
	case first != "localhost" && !strings.ContainsAny(first, ".:"):
		repository = "docker.io/" + repository
	}
	return repository, tag
}
