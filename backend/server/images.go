package server

import (
	"net/http"
	"slices"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
)

// imageRoutes are the routes of images.
type imageRoutes struct{ hub *hub.Hub }

func (s imageRoutes) mount(m *mounts) {
	answer(m, route.Images, s.listImages)
	answer(m, route.Environments, s.listEnvironments)
	answer(m, route.EnvironmentFile, s.environmentFile)
	take(m, route.ImageSend, s.sendImage)
	take(m, route.ImagePull, s.pullImage)
	take(m, route.ImageRemove, s.removeImages)
	answer(m, route.ImageDisk, s.imageDisk)
	take(m, route.Commit, s.commit)
}

// imageOut removes the owners of an image and of the sessions that use it.
func imageOut(i session.Image) session.Image {
	i.Owners, i.UsedBy = nil, slices.Clone(i.UsedBy)
	for at := range i.UsedBy {
		i.UsedBy[at].Owner = ""
	}
	return i
}

func (s imageRoutes) listImages(r *http.Request) ([]hub.Image, error) {
	return eachAs(func(i hub.Image) hub.Image { return hub.Image{Image: imageOut(i.Image), Agent: i.Agent} })(
		s.hub.Images(r.Context(), r.FormValue("agent")))
}

func (s imageRoutes) listEnvironments(r *http.Request) ([]hub.Environment, error) {
	return s.hub.Environments(r.Context()), nil
}

func (s imageRoutes) environmentFile(*http.Request) (api.EnvironmentFile, error) {
	path, err := s.hub.CatalogueFile()
	file := api.EnvironmentFile{Path: path}
	if err != nil {
		file.Problem = asError(err)
	}
	return file, nil
}

func (s imageRoutes) sendImage(r *http.Request, req api.ImageSending) (api.Operation, error) {
	return starts(s.hub, r)(s.hub.SendImage(req))
}

func (s imageRoutes) pullImage(r *http.Request, req api.ImagePull) (api.Operation, error) {
	return starts(s.hub, r)(s.hub.PullImage(req.Agent, req.Image))
}

func (s imageRoutes) removeImages(r *http.Request, req api.ImageRemoval) (api.Operation, error) {
	return starts(s.hub, r)(s.hub.RemoveImages(req.Agent, req.Images))
}

func (s imageRoutes) imageDisk(r *http.Request) (api.ImageDisk, error) {
	disk, agent, err := s.hub.ImageDisk(r.Context(), r.URL.Query().Get("agent"))
	if err != nil {
		return api.ImageDisk{}, err
	}
	disk.Images = each(disk.Images, func(room session.ImageRoom) session.ImageRoom {
		room.Image = imageOut(room.Image)
		return room
	})
	return api.ImageDisk{ImageDisk: disk, Agent: agent}, nil
}

func (s imageRoutes) commit(r *http.Request, req api.Commit) (api.Operation, error) {
	return starts(s.hub, r)(s.hub.CommitSession(r.Context(), r.PathValue("id"), req.Name))
}
