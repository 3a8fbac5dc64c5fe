package router

import (
	"encoding/json"
	"net/http"
	"strings"
)

const modelsPath = "/v1/models"

// model is an entry in the list of models.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Owner   string `json:"owned_by"`
}

// listModels answers with the models that the visitor may use and that can answer now, or with one of them.
func (c *call) listModels() *problem {
	if c.request.Method != http.MethodGet && c.request.Method != http.MethodHead {
		return refused(http.StatusMethodNotAllowed, "unsupported", "The list of models can only be read.")
	}
	models, p := c.models(visitorOf(c.request.Header))
	if p != nil {
		return p
	}
	var out any = map[string]any{"object": "list", "data": models}
	if name := strings.TrimPrefix(c.request.URL.Path, modelsPath+"/"); name != c.request.URL.Path {
		one, ok := modelNamed(models, name)
		if !ok {
			return noModel(name)
		}
		out = one
	}
	text, _ := json.Marshal(out) // strings and numbers always have JSON
	c.answer.w.Header().Set("Content-Type", "application/json")
	c.answer.begin(http.StatusOK)
	if c.answer.write(append(text, '\n'), false) != nil {
		return left()
	}
	c.record.Outcome = OutcomeOK
	return nil
}

func (c *call) models(v visitor) ([]model, *problem) {
	c.router.mu.Lock()
	defer c.router.mu.Unlock()
	t := &c.router.table
	if p := t.standing(v, c.record.At).refusal(v); p != nil {
		return nil, p
	}
	models := []model{}
	for _, s := range t.services {
		if _, verdict := s.admit(v, c.record.At); verdict != welcome || !s.answers() {
			continue
		}
		for _, name := range s.Models {
			if _, twice := modelNamed(models, name); !twice {
				models = append(models, model{ID: name, Object: "model", Owner: s.Owner})
			}
		}
	}
	return models, nil
}

func modelNamed(models []model, name string) (model, bool) {
	for _, one := range models {
		if one.ID == name {
			return one, true
		}
	}
	return model{}, false
}
