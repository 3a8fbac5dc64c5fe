// Command tsgen derives files from the wire types of backend/api: the types and the rules of entered fields for the
// user interface (frontend/src/api/types.gen.ts and rules.gen.ts), the OpenAPI document (backend/api/openapi.json), and
// a copy of the agent's English phrases (frontend/src/i18n/en/phrases.json). Run it in the module with
//
//	go run ./build/tsgen          write all
//	go run ./build/tsgen -check   exit with 1 when one of them is out of date
//
// The types are those of the bodies of [slipway/backend/api/route]. Their comments and the members of enums are read
// from the source.
package main

import (
	"os"
	"path/filepath"

	"slipway/build/generated"
)

func main() { generated.Main("tsgen", generate) }

func generate(root string) (map[string][]byte, error) {
	source, err := readSource(root)
	if err != nil {
		return nil, err
	}
	document, err := openAPI(source)
	if err != nil {
		return nil, err
	}
	types, err := typeScript("types", source)
	if err != nil {
		return nil, err
	}
	bounds, err := typeScript("rules", rules)
	if err != nil {
		return nil, err
	}
	phrases, err := os.ReadFile(filepath.Join(root, "backend/session/phrases.json"))
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"frontend/src/api/types.gen.ts":     types,
		"frontend/src/api/rules.gen.ts":     bounds,
		"frontend/src/i18n/en/phrases.json": phrases,
		"backend/api/openapi.json":          document,
	}, nil
}
