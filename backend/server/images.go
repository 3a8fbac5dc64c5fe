package server

import (
	"cmp"
	"net/http"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
)

func imageOut(i session.Image, agent string) api.Image {
	labels := i.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	return api.Image{
		ID: i.ID, Refs: append([]string{}, i.Refs...), Size: int64(i.Size), CreatedAt: i.CreatedAt, Arch: i.Arch,
		Labels: labels, Agent: agent,
		Origin: maybe(i.Origin, originOut), UsedBy: each(i.UsedBy, func(u session.ImageUser) api.ImageUser {
			return api.ImageUser{Session: string(u.Session), Name: u.Name}
		}),
	}
}

func originOut(o session.ImageOrigin) api.ImageOrigin {
	return api.ImageOrigin{Name: o.Name, Owner: o.Owner, Session: string(o.Session), SessionName: o.SessionName,
		Base: o.Base, Series: o.Series}
}

func environmentOut(e hub.Environment) api.Environment {
	return api.Environment{ID: e.ID, Title: e.Title, Icon: e.Icon, Summary: e.Summary, Accelerator: e.Accelerator,
		MinCPU: e.MinCPU, MinMemory: int64(e.MinMemory),
		Versions: each(e.Versions, func(v hub.EnvironmentVersion) api.EnvironmentVersion {
			return api.EnvironmentVersion{Title: v.Title, Image: v.Image, Installed: v.Installed, Size: int64(v.Size),
				Custom: maybe(v.Custom, originOut), Agents: append([]string{}, v.Agents...)}
		})}
}

func (s *Server) listImages(r *http.Request) (any, error) {
	images, err := s.hub.ImagesOn(r.Context(), r.FormValue("agent"))
	if err != nil {
		return nil, err
	}
	return each(images, func(i hub.Image) api.Image { return imageOut(i.Image, i.Agent) }), nil
}

func (s *Server) listEnvironments(r *http.Request) (any, error) {
	return each(s.hub.Environments(r.Context()), environmentOut), nil
}

func (s *Server) environmentFile(*http.Request) (any, error) {
	path, err := s.hub.CatalogueFile()
	file := api.EnvironmentFile{Path: path}
	if err != nil {
		problem := problemOf(asError(err))
		file.Problem = &problem
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
	return api.ImageDisk{Agent: agent, Total: int64(disk.Total),
		Images: each(disk.Images, func(room session.ImageRoom) api.ImageRoom {
			return api.ImageRoom{Image: imageOut(room.Image, agent), Alone: int64(room.Alone),
				Containers: room.Containers}
		})}, nil
}

func (s *Server) commit(r *http.Request) (any, error) {
	req, err := decode[api.Commit](r)
	if err != nil {
		return nil, err
	}
	operation, err := s.hub.CommitSession(r.Context(), r.PathValue("id"), req.Name)
	return s.starts(r, operation, err)
}
