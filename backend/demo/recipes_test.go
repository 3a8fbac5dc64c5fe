package demo

import (
	"strings"
	"testing"

	"slipway/backend/recipe"
)

func TestRecipesCanBeRunAndBringBackTheirImages(t *testing.T) {
	for _, file := range recipes() {
		spec, err := recipe.Parse(file.Content)
		if err != nil {
			t.Errorf("%s: %v", file.Name, err)
		}
		if !strings.Contains(spec.Image, "@sha256:") || spec.Name+".slipway.yaml" != file.Name {
			t.Errorf("%s is of %s and runs %s", file.Name, spec.Name, spec.Image)
		}
	}
}
