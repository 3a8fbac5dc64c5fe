package api

import "reflect"

// TypeName returns the name of a type in the OpenAPI document and in TypeScript: its name in Go, unless another package
// has one of that name.
func TypeName(typ reflect.Type) string {
	if name, ok := typeNames[typ.String()]; ok {
		return name
	}
	return typ.Name()
}

var typeNames = map[string]string{
	"hub.PresetContent":    "PresetRequest",
	"hub.Board":            "DeviceBoard",
	"hub.Step":             "OpStep",
	"hub.Report":           "UsageReport",
	"hub.Resources":        "ResourceSummary",
	"hub.Rotation":         "KeyRotation",
	"session.FolderChange": "FolderUpdate",
	"session.Allowance":    "PersonLimit",
	"session.Error":        "Problem",
	"session.FieldError":   "FieldProblem",
	"recipe.Field":         "RecipeField",
	"gpu.Instance":         "DeviceInstance",
	"gpu.Request":          "Accelerator",
}
