//go:build desktop

package app

import (
	"encoding/base64"
	"io"
	"net/url"
	"os"
	"strings"
)

// recipeSuffix ends the names of recipes as Slipway saves them.
const recipeSuffix = ".slipway.yaml"

// mostRecipe is longer than a recipe that fits into a link, which the control plane checks.
const mostRecipe = 64 << 10

// isRecipe reports whether an argument is the path of a recipe, or its file URL, as desktops hand files to programs.
func isRecipe(arg string) bool { return strings.HasSuffix(arg, recipeSuffix) }

// recipeLink returns a link that fills in the launcher from a recipe.
func recipeLink(arg string) (string, error) {
	if address, err := url.Parse(arg); err == nil && address.Scheme == "file" {
		arg = address.Path
	}
	file, err := os.Open(arg)
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(file, mostRecipe))
	return "slipway://run?recipe=" + base64.RawURLEncoding.EncodeToString(data), err
}
