package server

import (
	"net/http"
	"slices"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/recipe"
	"slipway/backend/session"
)

type serviceRecipes struct{ hub *hub.Hub }

func (s serviceRecipes) mount(m *mounts) {
	answer(m, route.ServiceRecipe, func(r *http.Request) (api.ServiceRecipe, error) {
		_, found, err := s.hub.FindService(r.Context(), r.PathValue("service"), r.FormValue("agent"))
		if err != nil {
			return api.ServiceRecipe{}, err
		}
		of := s.hub.ServiceRecipe(r.Context(), found)
		out := api.ServiceRecipe{Name: of.Name, FileName: recipe.FileName(of.Name), Pinned: of.Pinned}
		out.YAML = string(recipe.WriteService(recipe.Service{Name: of.Name, ServiceWish: found.ServiceWish,
			Spec: of.Spec}))
		for _, v := range of.Spec.Env {
			if session.SecretName(v.Name) {
				out.Secrets = append(out.Secrets, v.Name)
			}
		}
		return out, nil
	})
}

// revealed returns variables with hidden values replaced by those that the newest revision of a service with such a
// variable has, so that a new revision need not repeat them.
func revealed(env []session.EnvVar, of session.Service) []session.EnvVar {
	for i, v := range env {
		for _, revision := range of.Revisions {
			at := slices.IndexFunc(revision.Spec.Env, func(has session.EnvVar) bool { return has.Name == v.Name })
			if v.Value == session.Hidden && at >= 0 {
				env[i].Value = revision.Spec.Env[at].Value
				break
			}
		}
	}
	return env
}
