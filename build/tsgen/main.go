// Command tsgen derives files from the wire types of backend/api: the types and the rules of entered fields for the
// user interface (frontend/src/api/types.gen.ts and rules.gen.ts), the table of model servers (runtimes.gen.ts there),
// the OpenAPI document (backend/api/openapi.json), and a copy of the agent's English phrases
// (frontend/src/i18n/en/phrases.json). Run it in the module with
//
//	go run ./build/tsgen          write all
//	go run ./build/tsgen -check   exit with 1 when one of them is out of date
//
// The types are those of the bodies of [slipway/backend/api/route]. Their comments and the members of enums are read
// from the source.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"text/template"

	"slipway/backend/hub"
	"slipway/backend/runtimes"
	"slipway/backend/session"
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
	servers, err := typeScript("runtimes", map[string]any{"All": runtimes.All(), "Target": runtimes.ModelTarget,
		"Share": session.GPUMemoryShare})
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
		"frontend/src/api/runtimes.gen.ts":  servers,
		"frontend/src/i18n/en/phrases.json": phrases,
		"backend/api/openapi.json":          document,
	}, nil
}

//go:embed typescript.tmpl
var templateText string

var templates = template.Must(template.New("").
	Funcs(template.FuncMap{"sentence": sentence, "json": asJSON}).Parse(templateText))

func typeScript(name string, from any) ([]byte, error) {
	var out bytes.Buffer
	err := templates.ExecuteTemplate(&out, name, from)
	return out.Bytes(), err
}

func asJSON(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}

// Body is the type of a body, given by its zero value.
func (s *source) Body(body any) string {
	if body == nil {
		return "undefined"
	}
	typ := reflect.TypeOf(body)
	if typ.Kind() == reflect.Slice {
		return s.names[typ.Elem()] + "[]"
	}
	return s.names[typ]
}

// rule is a bound or pattern that the user interface needs during input. The control plane checks everything else.
type rule struct {
	Name, Doc string
	Value     any // int, or text as it is in TypeScript, or session.NameRule
}

func (r rule) IsName() bool { _, is := r.Value.(session.NameRule); return is }

var rules = []rule{
	{"SESSION_NAME", "Names of sessions", session.SessionNames},
	{"FOLDER_NAME", "Names of folders", session.FolderNames},
	{"SERVICE_NAME", "Names of services", session.ServiceNames},
	{"MAX_REPLICAS", "Most replicas of a service", session.MaxReplicas},
	{"MAX_RULES", "Most scaling rules of a service", session.MaxRules},
	{"COMMIT_NAME", "Names of images that are made of sessions", session.CommitNames},
	{"MAX_RECENT_NAME", "Most characters of the name of an entry of the launch history", hub.MaxRecentName},
	{"MAX_PRESET_NAME", "Most characters of the name of a preset", hub.MaxPresetName},
	{"MAX_TAGS", "Most tags of a session", session.MaxTags},
	{"MIN_PORT", "First port that a session may open", session.MinPort},
	{"MAX_PORT", "Last port", session.MaxPort},
	{"MAX_PORTS", "Most ports of a session", session.MaxPorts},
	{"MIN_MEMORY", "Least memory of a session, in bytes", int(session.MinMemory)},
	{"SMALL_SHM", "Automatic shared memory where there is little memory, in bytes", int(session.SmallShm)},
	{"LARGE_SHM", "Automatic shared memory where there is enough, in bytes", int(session.LargeShm)},
	{"LARGE_SHM_FROM", "Least memory for the large amount, in bytes", int(session.LargeShmFrom)},
	{"MAX_THREADS", "Most threads of each process", session.MaxThreads},
	{"MAX_CLUSTER", "Most containers of a session", session.MaxCluster},
	{"MAX_LAUNCHES", "Most sessions that are launched at once", session.MostLaunches},
	{"MAX_PRIORITY", "Highest priority", session.MaxPriority},
	{"MAX_SLURM_OPTIONS", "Most options of sbatch of a session", session.MaxSlurmOptions},
	{"DEFAULT_PRIORITY", "Priority of a session that names none", session.DefaultPriority},
	{"MAX_AFTER", "Most sessions to wait for", session.MaxAfter},
	{"MAX_COMMITS", "Most images that are kept of a session's ends", session.MaxCommitOnEnd},
	{"MAX_ENV", "Most variables of a session", session.MaxEnv},
	{"CACHE_FOLDER", "The folder for what package managers download", strconv.Quote(session.CacheFolder)},
	{"HOME", "The home and working directory of every session", strconv.Quote(session.Home)},
	{"HIDDEN", "What stands for the value of a secret", strconv.Quote(session.Hidden)},
	{"SECRET_NAME", "Matches the names of variables whose values are secret", "/" + session.SecretPattern + "/i"},
}

// sentence capitalizes doc, ends it with a full stop, and keeps it from ending its comment.
func sentence(doc string) string {
	doc = strings.ReplaceAll(doc, "*/", "*\u200b/")
	doc = strings.ToUpper(doc[:1]) + doc[1:]
	if !strings.HasSuffix(doc, ".") {
		doc += "."
	}
	return doc
}
