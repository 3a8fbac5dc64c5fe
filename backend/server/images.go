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
	answer(m, route.Images, func(r *http.Request) ([]hub.Image, error) {
		return eachAs(func(i hub.Image) hub.Image { return hub.Image{Image: imageOut(i.Image), Agent: i.Agent} })(
			s.hub.Images(r.Context(), r.FormValue("agent")))
	})
	answer(m, route.Environments, func(r *http.Request) ([]hub.Environment, error) {
		return s.hub.Environments(r.Context()), nil
	})
	answer(m, route.EnvironmentFile, func(*http.Request) (api.EnvironmentFile, error) {
		path, err := s.hub.CatalogueFile()
		return api.EnvironmentFile{Path: path, Problem: problemOf(err)}, nil
	})
	take(m, route.ImageSend, func(_ *http.Request, req api.ImageSending) (api.Operation, error) {
		return s.hub.SendImage(req)
	})
	take(m, route.ImagePull, func(_ *http.Request, req api.ImagePull) (api.Operation, error) {
		return s.hub.PullImage(req.Agent, req.Image)
	})
	take(m, route.ImageRemove, func(_ *http.Request, req api.ImageRemoval) (api.Operation, error) {
		return s.hub.RemoveImages(req.Agent, req.Images)
	})
	answer(m, route.ImageDisk, s.imageDisk)
	take(m, route.Commit, func(r *http.Request, req api.Commit) (api.Operation, error) {
		return s.hub.CommitSession(r.Context(), r.PathValue("id"), req.Name)
	})
}

// imageOut removes the owners of an image and of the sessions that use it.
func imageOut(i session.Image) session.Image {
	i.Owners, i.UsedBy = nil, slices.Clone(i.UsedBy)
	for at := range i.UsedBy {
		i.UsedBy[at].Owner = ""
	}
	return i
}

func (s imageRoutes) imageDisk(r *http.Request) (api.ImageDisk, error) {
	disk, agent, err := s.hub.ImageDisk(r.Context(), r.URL.Query().Get("agent"))
	disk.Images = each(disk.Images, func(room session.ImageRoom) session.ImageRoom {
		room.Image = imageOut(room.Image)
		return room
	})
	return api.ImageDisk{ImageDisk: disk, Agent: agent}, err
}
