package server

import (
	"cmp"
	"net/http"
	"slices"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
)

// imageOut is an image as it leaves the server, without whose it and the sessions
// are that use it.
func imageOut(i session.Image) session.Image {
	i.Owners, i.UsedBy = nil, slices.Clone(i.UsedBy)
	for at := range i.UsedBy {
		i.UsedBy[at].Owner = ""
	}
	return i
}

func (s *Server) listImages(r *http.Request) (any, error) {
	images, err := s.hub.ImagesOn(r.Context(), r.FormValue("agent"))
	if err != nil {
		return nil, err
	}
	return each(images, func(i hub.Image) hub.Image { return hub.Image{Image: imageOut(i.Image), Agent: i.Agent} }), nil
}

func (s *Server) listEnvironments(r *http.Request) (any, error) {
	return s.hub.Environments(r.Context()), nil
}

func (s *Server) environmentFile(*http.Request) (any, error) {
	path, err := s.hub.CatalogueFile()
	file := api.EnvironmentFile{Path: path}
	if err != nil {
		file.Problem = asError(err)
	}
	return file, nil
}

func (s *Server) sendImage(r *http.Request) (any, error) {
	req, err := decode[api.ImageSending](r)
	if err != nil {
		return nil, err
	}
	operation, err := s.hub.SendImage(hub.ImageSending{Image: req.Image, From: cmp.Or(req.From, s.hub.Local()),
		To: cmp.Or(req.To, s.hub.Local()), Replace: req.Replace})
	return s.starts(r, operation, err)
}

func (s *Server) pullImage(r *http.Request) (any, error) {
	req, err := decode[api.ImagePull](r)
	if err != nil {
		return nil, err
	}
	operation, err := s.hub.PullImage(req.Agent, req.Image)
	return s.starts(r, operation, err)
}

func (s *Server) removeImages(r *http.Request) (any, error) {
	req, err := decode[api.ImageRemoval](r)
	if err != nil {
		return nil, err
	}
	operation, err := s.hub.RemoveImages(req.Agent, req.Images)
	return s.starts(r, operation, err)
}

func (s *Server) imageDisk(r *http.Request) (any, error) {
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

func (s *Server) commit(r *http.Request) (any, error) {
	req, err := decode[api.Commit](r)
	if err != nil {
		return nil, err
	}
	operation, err := s.hub.CommitSession(r.Context(), r.PathValue("id"), req.Name)
	return s.starts(r, operation, err)
}
