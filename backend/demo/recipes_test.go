package demo

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"slipway/backend/engine/sim"
	"slipway/backend/recipe"
)

func TestRecipesCanBeRunAndBringBackTheirImages(t *testing.T) {
	files, err := fs.Glob(folders, "folders/recipes/*")
	if err != nil || len(files) != 2 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		content, err := folders.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := recipe.Parse(content)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		image, _, _ := strings.Cut(spec.Image, "@")
		if spec.Image != sim.Pinned(image) || spec.Name+".slipway.yaml" != path.Base(file) {
			t.Errorf("%s is of %s and runs %s", file, spec.Name, spec.Image)
		}
	}
}
