package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/recipe"
	"slipway/backend/session"
)

type recipeRoutes struct{ hub *hub.Hub }

func (s recipeRoutes) mount(m *mounts) {
	answer(m, route.RecentRecipe, s.recipeOf(s.hub.RecentRecipe))
	answer(m, route.SessionRecipe, s.recipeOf(s.hub.SessionRecipe))
	take(m, route.RecipeRead, readRecipe)
	take(m, route.RecipeCompare, func(_ *http.Request, req api.RecipePair) ([]recipe.Field, error) {
		return recipe.Compare(req.Left, req.Right), nil
	})
	take(m, route.LinkRead, readLink)
}

// recipeOf returns a handler that answers with the recipe that find finds by the id in the path.
func (s recipeRoutes) recipeOf(find func(ctx context.Context, id string) (hub.Recipe, error)) func(
	*http.Request) (api.Recipe, error) {
	return func(r *http.Request) (api.Recipe, error) {
		found, err := find(r.Context(), r.PathValue("id"))
		if err != nil {
			return api.Recipe{}, err
		}
		return s.writeRecipe(r, found), nil
	}
}

func (s recipeRoutes) writeRecipe(r *http.Request, found hub.Recipe) api.Recipe {
	out := api.Recipe{Name: found.Name, FileName: recipe.FileName(found.Name), Spec: found.Spec.Redacted(""),
		Command: commandLine(found.Spec, 1), Pinned: found.Pinned, Passed: found.Passed,
		Sbatch: found.Sbatch}
	var notes []string
	if at := found.Passed; at != nil {
		notes = append(notes, fmt.Sprintf("Left out: notBefore: %s, since it has passed.",
			at.UTC().Format(time.RFC3339)))
	}
	out.YAML = string(recipe.Write(out.Spec, notes...))
	for _, v := range found.Spec.Env {
		if session.SecretName(v.Name) {
			out.Secrets = append(out.Secrets, v.Name)
		}
	}
	docker := dockerLine(found.Spec.WithDefaults(), s.folderPaths(r, found.Spec))
	out.Docker, out.Lacks = docker.text(), docker.lacks
	return out
}

// folderPaths returns the paths of the folders that a spec mounts, by their names and ids, as far as their agents are
// reachable.
func (s recipeRoutes) folderPaths(r *http.Request, spec session.Spec) map[string]string {
	paths := map[string]string{}
	if !slices.ContainsFunc(spec.Mounts, func(m session.Mount) bool { return m.Folder != "" }) {
		return paths
	}
	folders, _ := s.hub.Folders(r.Context(), spec.Agent)
	for _, f := range folders {
		if f.Path != "" {
			paths[f.Name], paths[string(f.ID)] = f.Path, f.Path
		}
	}
	return paths
}

// readRecipe parses a recipe. A preview validates its values, as for any spec.
func readRecipe(_ *http.Request, req api.RecipeText) (session.Spec, error) {
	spec, err := recipe.Parse([]byte(req.YAML))
	if err != nil {
		return session.Spec{}, recipeFault(err)
	}
	return judged(spec)
}

// checkHidden rejects values that were redacted in an answer and sent back.
func checkHidden(env []session.EnvVar) []session.FieldError {
	var wrong []session.FieldError
	for i, v := range env {
		if v.Value == session.Hidden {
			wrong = append(wrong, wrongField(fmt.Sprintf("env[%d].value", i),
				fmt.Sprintf("The value of %s was hidden and is not known.", v.Name), "Enter it again."))
		}
	}
	return wrong
}

// judged returns a spec without secrets, or what is invalid in it.
func judged(spec session.Spec) (session.Spec, error) {
	wrong := checkHidden(spec.Env)
	if kind := spec.WithDefaults().Type; kind != session.Interactive && kind != session.Batch {
		wrong = append(wrong, wrongField("type", fmt.Sprintf("%q is not a type of session.", spec.Type),
			"Write interactive or batch."))
	}
	if len(wrong) > 0 {
		return spec, &session.Error{Code: session.CodeRecipeInvalid, Hint: wrong[0].Hint, Fields: wrong,
			Message: fmt.Sprintf("%s: %s", wrong[0].Field, wrong[0].Message)}
	}
	return spec.Redacted(""), nil
}

// recipeFault converts an error of a recipe, with its line.
func recipeFault(err error) error {
	var fault *recipe.Fault
	if !errors.As(err, &fault) {
		return err
	}
	e := session.NewError(session.CodeRecipeInvalid, fault.Message, fault.Hint)
	switch {
	case fault.Line > 0:
		e.Message = fmt.Sprintf("Line %d: %s", fault.Line, fault.Message)
	case fault.Field == nil:
		e.Message = strings.ToUpper(fault.Message[:1]) + fault.Message[1:]
	}
	if fault.Field != nil {
		e.Fields = []session.FieldError{*fault.Field}
	}
	return e
}

// readLink parses a link like a recipe.
func readLink(_ *http.Request, req api.LinkText) (recipe.Link, error) {
	link, err := recipe.ParseLink(req.URL)
	if err != nil {
		return recipe.Link{}, recipeFault(err)
	}
	if link.Spec == nil {
		return link, nil
	}
	spec, err := judged(*link.Spec)
	link.Spec = &spec
	return link, err
}
