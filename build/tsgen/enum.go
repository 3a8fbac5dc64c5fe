package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"strconv"

	"slipway/build/generated"
)

type enum struct {
	Name, Doc string
	Members   []string
}

// enumFields has the enum of each field whose Go type does not show it.
var enumFields = map[string]string{
	"App.Kind":               "AppKind",
	"Machine.Engine":         "EngineName",
	"Capability.State":       "ProbeState",
	"DeviceBoard.Source":     "DeviceSource",
	"DeviceBoard.Attach":     "AttachWay",
	"DeviceBoard.Strategy":   "Strategy",
	"Session.Enforcement":    "Enforcement",
	"Preview.Enforcement":    "Enforcement",
	"Account.Kind":           "AccountKind",
	"UsageReport.By":         "UsageBy",
	"UsageReport.Bucket":     "UsageBucket",
	"Agent.Role":             "RoleOrNone",
	"PairedClient.Role":      "Role",
	"Connection.State":       "LinkState",
	"Connection.Transport":   "Transport",
	"Question.Kind":          "QuestionKind",
	"Operation.Kind":         "OperationKind",
	"Operation.State":        "OperationState",
	"OpStep.State":           "StepState",
	"Prompt.Kind":            "PromptKind",
	"FileSyncing.Keep":       "Keeping",
	"Secret.Kept":            "SecretPlace",
	"Settings.Theme":         "Theme",
	"Settings.Density":       "Density",
	"Settings.Language":      "Language",
	"Settings.CloseKeeps":    "CloseKeeps",
	"Settings.TerminalTheme": "TerminalTheme",
	"Settings.TerminalBell":  "TerminalBell",
	"Settings.TerminalPaste": "TerminalPaste",
}

// constantEnums have the constants of a Go type as members, and "" if orEmpty is set.
var constantEnums = []struct {
	name, goType, doc string
	orEmpty           bool
}{
	{"Code", "session.Code", "What happened: a failure, a reason to wait, an end or a warning.", false},
	{"FaultKind", "session.Kind", "What is wrong with a field.", false},
	{"SessionType", "session.Type", "What a session is for.", false},
	{"Status", "session.Status", "Where a session stands in its life.", false},
	{"Result", "session.Result", "How a session's work ended.", false},
	{"Reason", "session.Reason", "Why a session ended; empty while it lives.", true},
	{"PhaseName", "session.PhaseName", "A part of a session's course.", false},
	{"Outcome", "session.Outcome", "The result of one attempt at a phase or a step.", false},
	{"AppState", "session.AppState", "The state of an app.", false},
	{"IdleChecker", "session.IdleChecker", "A check that may find a session idle.", false},
	{"IdleState", "session.IdleState", "What a checker makes of a session; unknown means keep running.", false},
	{"CheckResult", "session.CheckResult", "The result of one probe of the doctor.", false},
	{"Role", "session.Role", "What a client may do at an agent.", false},
	{"RoleOrNone", "session.Role", "A role, or empty while it is unknown.", true},
	{"ProbeState", "gpu.ProbeState", "The outcome of trying one capability.", false},
	{"Vendor", "gpu.Vendor", "Who made a device.", false},
	{"Level", "gpu.Level", "By what means a share of a device is kept to its promise, strongest first.", false},
	{"Enforcement", "gpu.Level", "A level, or empty where there is no device.", true},
	{"LinkState", "hub.LinkState", "How an agent is reached at this moment.", false},
	{"QuestionKind", "hub.QuestionKind", "What a person must decide before an agent is reached again.", false},
	{"OperationKind", "hub.OperationKind", "What an operation does.", false},
	{"OperationState", "hub.OperationState", "Where an operation stands.", false},
	{"StepState", "hub.StepState", "Where a step of an operation stands.", false},
	{"SecretKind", "hub.SecretKind", "What a secret is for.", false},
	{"PromptKind", "hub.PromptKind", "What a person is asked for.", false},
	{"BuildPlace", "hub.BuildPlace", "Where the image of a project is built.", false},
	{"Keeping", "hub.Keeping", "What to keep of a file that changed on both sides.", false},
}

// plainEnums are listed here because no Go type has their members.
var plainEnums = []enum{
	{"AppKind", "How an app is reached.", []string{"web", "tcp"}},
	{"DeviceSource", "Where what is known of devices comes from.", []string{"nvml", "drm", "sim", "none"}},
	{"AttachWay", "How containers are given devices.", []string{"cdi", "device-request", "runtime", "nodes", "sim",
		"slurm", "none"}},
	{"Strategy", "Which devices are given first.", []string{"fill", "evenly"}},
	{"AccountKind", "Who used it.", []string{"session", "other", "idle", "unattributed"}},
	{"UsageBy", "What rows of accounts are summed up by.", []string{"", "session", "day", "label", "owner", "device"}},
	{"UsageBucket", "The time that one row of accounts counts.", []string{"", "hour", "day"}},
	{"EngineName", "What runs the containers.", []string{"docker", "sim", "slurm"}},
	{"SecretPlace", "Where the value of a secret is stored.", []string{"keyring", "file"}},
	{"Transport", "What carries the connection to an agent.", []string{"local", "ssh", "tls", "wss"}},
	{"Theme", "The colours of the user interface.", []string{"system", "light", "dark"}},
	{"Density", "How close the rows of the user interface stand.", []string{"comfortable", "compact"}},
	{"Language", "The language of the user interface.", []string{"en", "ko"}},
	{"CloseKeeps", "What closing the window does with live sessions.", []string{"ask", "keep", "quit"}},
	{"TerminalTheme", "Colours of terminals.", []string{"follow", "light", "dark", "contrast", "solarized-light",
		"solarized-dark"}},
	{"TerminalBell", "What a terminal's bell does.", []string{"visual", "sound", "none"}},
	{"TerminalPaste", "When to ask before a paste.", []string{"runs", "several", "never"}},
}

// enumOf is the enum of a Go type, "" if there is none.
func enumOf(goType string) string {
	for _, e := range constantEnums {
		if e.goType == goType {
			return e.name
		}
	}
	return ""
}

// enumPackages are the directories of the packages in constantEnums.
var enumPackages = map[string]string{"session": "backend/session", "hub": "backend/hub", "gpu": "gpu"}

// readEnums reads the members of every enum. It fails if a type in constantEnums has no constants.
func readEnums(root string) ([]enum, error) {
	constants := map[string][]string{}
	for pkg, dir := range enumPackages {
		files, err := generated.Parse(filepath.Join(root, dir))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			for n := range ast.Preorder(file) {
				value, ok := n.(*ast.ValueSpec)
				if !ok || len(value.Values) != 1 {
					continue
				}
				typ, named := value.Type.(*ast.Ident)
				lit, literal := value.Values[0].(*ast.BasicLit)
				if named && literal && lit.Kind == token.STRING {
					text, err := strconv.Unquote(lit.Value)
					if err != nil {
						return nil, err
					}
					constants[pkg+"."+typ.Name] = append(constants[pkg+"."+typ.Name], text)
				}
			}
		}
	}
	var enums []enum
	for _, e := range constantEnums {
		members := constants[e.goType]
		if len(members) == 0 {
			return nil, fmt.Errorf("there are no constants of type %s; correct constantEnums in build/tsgen", e.goType)
		}
		if e.orEmpty {
			members = append([]string{""}, members...)
		}
		enums = append(enums, enum{e.name, e.doc, members})
	}
	return append(enums, plainEnums...), nil
}
