package route

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/recipe"
	"slipway/backend/session"
)

// Routes of recipes, presets and recent launches.
var (
	Presets = Route[None, []hub.Preset]{&Endpoint{Name: "presets", Pattern: "GET /presets",
		Summary: "List resource presets: built-in ones first, then the user's own."}}
	PresetCreate = Route[hub.PresetContent, hub.Preset]{&Endpoint{Name: "preset-create", Pattern: "POST /presets",
		Summary: "Save a preset.", Status: http.StatusCreated}}
	PresetUpdate = Route[hub.PresetUpdate, hub.Preset]{&Endpoint{Name: "preset-update", Pattern: "PATCH /presets/{id}",
		Summary: "Rename or change a preset."}}
	PresetDelete = Route[None, None]{&Endpoint{Name: "preset-delete", Pattern: "DELETE /presets/{id}",
		Summary: "Delete a preset.", Status: http.StatusNoContent}}
	Recents = Route[None, []hub.Recent]{&Endpoint{Name: "recents", Pattern: "GET /recents",
		Summary: "List the launch history."}}
	RecentUpdate = Route[api.RecentUpdate, hub.Recent]{&Endpoint{Name: "recent-update", Pattern: "PATCH /recents/{id}",
		Summary: "Pin, unpin or rename an entry of the launch history."}}
	RecentDelete = Route[None, None]{&Endpoint{Name: "recent-delete", Pattern: "DELETE /recents/{id}",
		Summary: "Delete an entry of the launch history.", Status: http.StatusNoContent}}
	RecentRecipe = Route[None, api.Recipe]{&Endpoint{Name: "recent-recipe", Pattern: "GET /recents/{id}/recipe",
		Summary: "Read an entry of the launch history as a recipe."}}
	RecipeRead = Route[api.RecipeText, session.Spec]{&Endpoint{Name: "recipe-read", Pattern: "POST /recipes/read",
		Summary: "Parse a recipe. Nothing is launched; preview validates its values."}}
	RecipeCompare = Route[api.RecipePair, []recipe.Field]{&Endpoint{Name: "recipe-compare",
		Pattern: "POST /recipes/compare",
		Summary: "Compare two specs field by field."}}
	LinkRead = Route[api.LinkText, recipe.Link]{&Endpoint{Name: "link-read", Pattern: "POST /links/read",
		Summary: "Show what a slipway:// link asks for, without doing it."}}
)
