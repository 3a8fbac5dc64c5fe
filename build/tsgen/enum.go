package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
)

// enum is a text with known members.
type enum struct {
	name    string
	doc     string
	members []string
}

// enumFields names the enum of each field that is one.
var enumFields = map[string]string{
	"Session.Type":           "SessionType",
	"Session.Status":         "Status",
	"Session.Result":         "Result",
	"Session.Reason":         "Reason",
	"Spec.Type":              "SessionType",
	"Kernel.Status":          "Status",
	"Phase.Phase":            "PhaseName",
	"Phase.Result":           "Outcome",
	"Phase.From":             "Status",
	"Phase.To":               "Status",
	"Step.Result":            "Outcome",
	"App.Kind":               "AppKind",
	"App.State":              "AppState",
	"Check.Result":           "CheckResult",
	"Machine.Engine":         "EngineName",
	"IdleCheck.Checker":      "IdleChecker",
	"IdleCheck.State":        "IdleState",
	"Capability.State":       "ProbeState",
	"DeviceBoard.Source":     "DeviceSource",
	"DeviceBoard.Attach":     "AttachWay",
	"DeviceBoard.Strategy":   "Strategy",
	"DeviceState.Vendor":     "Vendor",
	"DeviceState.Level":      "Level",
	"Session.Enforcement":    "Enforcement",
	"Preview.Enforcement":    "Enforcement",
	"Account.Kind":           "AccountKind",
	"UsageReport.By":         "UsageBy",
	"UsageReport.Bucket":     "UsageBucket",
	"Agent.Role":             "RoleOrNone",
	"PairedDevice.Role":      "Role",
	"Connection.State":       "LinkState",
	"Connection.Transport":   "Transport",
	"Question.Kind":          "QuestionKind",
	"Operation.Kind":         "OperationKind",
	"Operation.State":        "OperationState",
	"OpStep.State":           "StepState",
	"Prompt.Kind":            "PromptKind",
	"Settings.Theme":         "Theme",
	"Settings.Density":       "Density",
	"Settings.Language":      "Language",
	"Settings.CloseKeeps":    "CloseKeeps",
	"Settings.TerminalTheme": "TerminalTheme",
	"Settings.TerminalBell":  "TerminalBell",
	"Settings.TerminalPaste": "TerminalPaste",
}

// sessionEnums are the enums whose members are the constants of a type of
// package session, and whether they may also be empty.
var sessionEnums = []struct {
	name, goType, doc string
	orEmpty           bool
}{
	{"SessionType", "Type", "What a session is for.", false},
	{"Status", "Status", "Where a session stands in its life.", false},
	{"Result", "Result", "How a session's work ended.", false},
	{"Reason", "Reason", "Why a session ended; empty while it lives.", true},
	{"PhaseName", "PhaseName", "A part of a session's course.", false},
	{"Outcome", "Outcome", "The result of one attempt at a phase or a step.", false},
	{"AppState", "AppState", "The state of an app.", false},
	{"IdleChecker", "IdleChecker", "A check that may find a session idle.", false},
	{"IdleState", "IdleState", "What a checker makes of a session; unknown means keep running.", false},
}

// levels are those of package gpu.
var levels = []string{"hardware", "hard", "per-process", "watched", "none"}

// plainEnums are the enums that only the wire types' comments list.
var plainEnums = []enum{
	{"AppKind", "How an app is reached.", []string{"web", "tcp"}},
	{"ProbeState", "The outcome of trying one capability.", []string{"yes", "no", "unknown"}},
	{"DeviceSource", "Where what is known of devices comes from.", []string{"nvml", "drm", "sim", "none"}},
	{"AttachWay", "How containers are given devices.", []string{"cdi", "device-request", "runtime", "nodes", "sim",
		"none"}},
	{"Strategy", "Which devices are given first.", []string{"fill", "evenly"}},
	{"Vendor", "Who made a device.", []string{"nvidia", "amd", "intel", "sim"}},
	{"Level", "By what means a share of a device is kept to its promise, strongest first.", levels},
	{"Enforcement", "A level, or empty where there is no device.", append([]string{""}, levels...)},
	{"AccountKind", "Who used it.", []string{"session", "other", "idle", "unattributed"}},
	{"UsageBy", "What rows of accounts are summed up by.", []string{"", "session", "day", "label", "owner", "device"}},
	{"UsageBucket", "The time that one row of accounts counts.", []string{"", "hour", "day"}},
	{"CheckResult", "The result of one probe of the doctor.", []string{"ok", "warning", "failed"}},
	{"EngineName", "What runs the containers.", []string{"docker", "sim"}},
	{"Role", "What a device may do at an agent.", []string{"admin", "user"}},
	{"RoleOrNone", "A role, or empty while it is unknown.", []string{"", "admin", "user"}},
	{"LinkState", "How an agent is reached at this moment.", []string{"off", "connecting", "connected", "probing",
		"down", "question"}},
	{"Transport", "What carries the connection to an agent.", []string{"local", "ssh", "tls", "wss"}},
	{"QuestionKind", "What a person must decide before an agent is reached again.", []string{"re-keyed", "host-key"}},
	{"OperationKind", "What an operation does.", []string{"agent-add", "agent-probe", "agent-upgrade", "agent-remove",
		"agent-reconnect", "image-send", "image-fetch", "file-archive", "image-pull", "image-commit", "image-remove",
		"folder-purge"}},
	{"OperationState", "Where an operation stands.", []string{"running", "waiting", "done", "failed", "cancelled"}},
	{"StepState", "Where a step of an operation stands.", []string{"pending", "running", "ok", "warning", "failed",
		"skipped"}},
	{"PromptKind", "What a person is asked for.", []string{"password", "passphrase", "mfa", "host-key", "pair-code",
		"confirm", "notice"}},
	{"Theme", "The colours of the user interface.", []string{"system", "light", "dark"}},
	{"Density", "How close the rows of the user interface stand.", []string{"comfortable", "compact"}},
	{"Language", "The language of the user interface.", []string{"en", "ko"}},
	{"CloseKeeps", "What closing the window does with live sessions.", []string{"ask", "keep", "quit"}},
	{"TerminalTheme", "Colours of terminals.", []string{"follow", "light", "dark", "contrast", "solarized-light",
		"solarized-dark"}},
	{"TerminalBell", "What a terminal's bell does.", []string{"visual", "sound", "none"}},
	{"TerminalPaste", "When to ask before a paste.", []string{"runs", "several", "never"}},
}

// readEnums reads the members of every enum. It fails when package session has
// no constants of a type named in sessionEnums.
func readEnums(root string) ([]enum, error) {
	constants := map[string][]string{}
	err := eachFile(filepath.Join(root, "backend/session"), func(file *ast.File) error {
		for _, decl := range file.Decls {
			if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.CONST {
				addConstants(constants, gen)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var enums []enum
	for _, e := range sessionEnums {
		members := constants[e.goType]
		if len(members) == 0 {
			return nil, fmt.Errorf("package session has no constants of type %s; correct sessionEnums in build/tsgen",
				e.goType)
		}
		if e.orEmpty {
			members = append([]string{""}, members...)
		}
		enums = append(enums, enum{e.name, e.doc, members})
	}
	return append(enums, plainEnums...), nil
}

func addConstants(into map[string][]string, gen *ast.GenDecl) {
	for _, spec := range gen.Specs {
		value := spec.(*ast.ValueSpec)
		typ, ok := value.Type.(*ast.Ident)
		if !ok || len(value.Values) != 1 {
			continue
		}
		if lit, ok := value.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				into[typ.Name] = append(into[typ.Name], text)
			}
		}
	}
}

// checkEnumFields fails when enumFields names a field or an enum that is not there.
func (s *source) checkEnumFields() error {
	found := 0
	for _, typ := range s.structs {
		for _, f := range typ.fields {
			if f.typ.kind != kindEnum {
				continue
			}
			found++
			if !slices.ContainsFunc(s.enums, func(e enum) bool { return e.name == f.typ.name }) {
				return fmt.Errorf("%s.%s is a %s, which is no enum; add it to build/tsgen/enum.go", typ.name, f.name,
					f.typ.name)
			}
		}
	}
	if found != len(enumFields) {
		return fmt.Errorf("enumFields names %d fields and %d were found; remove those that are gone", len(enumFields),
			found)
	}
	return nil
}
