package server

import (
	"cmp"
	"net/http"
	"slices"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
)

// imageRoutes are the routes of images.
type imageRoutes struct {
	hub *hub.Hub
}

func (s imageRoutes) answers() map[string]answer {
	return map[string]answer{
		"images":           s.listImages,
		"environments":     s.listEnvironments,
		"environment-file": s.environmentFile,
		"image-send":       s.sendImage,
		"image-pull":       s.pullImage,
		"image-remove":     s.removeImages,
		"image-disk":       s.imageDisk,
		"commit":           s.commit,
	}
}

func (s imageRoutes) streams() map[string]streamed { return nil }

// imageOut is an image as it leaves the server, without whose it and the sessions
// are that use it.
func imageOut(i session.Image) session.Image {
	i.Owners, i.UsedBy = nil, slices.Clone(i.UsedBy)
	for at := range i.UsedBy {
		i.UsedBy[at].Owner = ""
	}
	return i
}

func (s imageRoutes) listImages(r *http.Request) (any, error) {
	images, err := s.hub.ImagesOn(r.Context(), r.FormValue("agent"))
	if err != nil {
		return nil, err
	}
	return each(images, func(i hub.Image) hub.Image { return hub.Image{Image: imageOut(i.Image), Agent: i.Agent} }), nil
}

func (s imageRoutes) listEnvironments(r *http.Request) (any, error) {
	return s.hub.Environments(r.Context()), nil
}

func (s imageRoutes) environmentFile(*http.Request) (any, error) {
	path, err := s.hub.CatalogueFile()
	file := api.EnvironmentFile{Path: path}
	if err != nil {
		file.Problem = asError(err)
	}
	return file, nil
}

func (s imageRoutes) sendImage(r *http.Request) (any, error) {
	req, err := decode[api.ImageSending](r)
	if err != nil {
		return nil, err
	}
	operation, err := s.hub.SendImage(hub.ImageSending{Image: req.Image, From: cmp.Or(req.From, s.hub.Local()),
		To: cmp.Or(req.To, s.hub.Local()), Replace: req.Replace})
	return starts(s.hub, r, operation, err)
}

func (s imageRoutes) pullImage(r *http.Request) (any, error) {
	req, err := decode[api.ImagePull](r)
	if err != nil {
		return nil, err
	}
	operation, err := s.hub.PullImage(req.Agent, req.Image)
	return starts(s.hub, r, operation, err)
}

func (s imageRoutes) removeImages(r *http.Request) (any, error) {
	req, err := decode[api.ImageRemoval](r)
	if err != nil {
		return nil, err
	}
	operation, err := s.hub.RemoveImages(req.Agent, req.Images)
	return starts(s.hub, r, operation, err)
}

func (s imageRoutes) imageDisk(r *http.Request) (any, error) {
	disk, agent, err := s.hub.ImageDisk(r.Context(), r.URL.Query().Get("agent"))
	if err != nil {
		return nil, err
	}
	disk.Images = each(disk.Images, func(room session.ImageRoom) session.ImageRoom {
		room.Image = imageOut(room.Image)
		return room
	})
	return api.ImageDisk{ImageDisk: disk, Agent: agent}, nil
}

func (s imageRoutes) commit(r *http.Request) (any, error) {
	req, err := decode[api.Commit](r)
	if err != nil {
		return nil, err
	}
	operation, err := s.hub.CommitSession(r.Context(), r.PathValue("id"), req.Name)
	return starts(s.hub, r, operation, err)
}
