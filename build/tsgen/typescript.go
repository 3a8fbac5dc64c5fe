package main

import (
	"bytes"
	_ "embed"
	"reflect"
	"strconv"
	"strings"
	"text/template"

	"slipway/backend/hub"
	"slipway/backend/session"
)

//go:embed typescript.tmpl
var templateText string

var templates = template.Must(template.New("").Funcs(template.FuncMap{"sentence": sentence}).Parse(templateText))

func typeScript(name string, from any) ([]byte, error) {
	var out bytes.Buffer
	err := templates.ExecuteTemplate(&out, name, from)
	return out.Bytes(), err
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
	{"MAX_LAUNCHES", "Most sessions that are launched at once", hub.MostLaunches},
	{"MAX_PRIORITY", "Highest priority", session.MaxPriority},
	{"DEFAULT_PRIORITY", "Priority of a session that names none", session.DefaultPriority},
	{"MAX_AFTER", "Most sessions to wait for", session.MaxAfter},
	{"MAX_COMMITS", "Most images that are kept of a session's ends", session.MaxCommitOnEnd},
	{"MAX_ENV", "Most variables of a session", session.MaxEnv},
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
