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
	Presets = at[None, []hub.Preset]("presets", "GET /presets",
		"List resource presets: built-in ones first, then the user's own.")
	PresetCreate = at[hub.PresetContent, hub.Preset]("preset-create", "POST /presets",
		"Save a preset.").answers(http.StatusCreated)
	PresetUpdate = at[hub.PresetUpdate, hub.Preset]("preset-update", "PATCH /presets/{id}",
		"Rename or change a preset.")
	PresetDelete = at[None, None]("preset-delete", "DELETE /presets/{id}", "Delete a preset.")
	Recents      = at[None, []hub.Recent]("recents", "GET /recents", "List the launch history.")
	RecentUpdate = at[api.RecentUpdate, hub.Recent]("recent-update", "PATCH /recents/{id}",
		"Pin, unpin or rename an entry of the launch history.")
	RecentDelete = at[None, None]("recent-delete", "DELETE /recents/{id}", "Delete an entry of the launch history.")
	RecentRecipe = at[None, api.Recipe]("recent-recipe", "GET /recents/{id}/recipe",
		"Read an entry of the launch history as a recipe.")
	RecipeRead = at[api.RecipeText, session.Spec]("recipe-read", "POST /recipes/read",
		"Parse a recipe. Nothing is launched; preview validates its values.")
	RecipeCompare = at[api.RecipePair, []recipe.Field]("recipe-compare", "POST /recipes/compare",
		"Compare two specs field by field.")
	LinkRead = at[api.LinkText, recipe.Link]("link-read", "POST /links/read",
		"Show what a slipway:// link asks for, without doing it.")
)
