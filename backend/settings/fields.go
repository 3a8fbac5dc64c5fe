package settings

import (
	"encoding/json"
	"slices"
	"strings"

	"slipway/backend/session"
)

// Kind is the type of a value.
type Kind string

// The kinds of values.
const (
	Text    Kind = "text"
	Integer Kind = "integer"
	Number  Kind = "number"
	Switch  Kind = "switch"
	List    Kind = "list" // of texts
)

// Field is one setting.
type Field struct {
	Name    string // its path in the file: theme, gpu.quantum
	Env     string // the variable that overrides it
	Kind    Kind
	Choices []string // the only allowed values of a Text; nil: any
	Least   float64  // of an Integer or Number
	Most    float64  // of an Integer or Number
	Default any      // nil: none
	Text    string   // description, one sentence
	Rule    string   // regular expression that a Text without Choices must match; "": none
	Example string   // of a value, for a hint
}

// Restart reports whether the setting is read only when Slipway starts. Those of the agent are; their names have
// groups.
func (f Field) Restart() bool { return strings.Contains(f.Name, ".") }

// Rules of durations, ports and amounts of memory.
const (
	lengthRule = `^(0|[1-9][0-9]*[smhdw])$`
	portRule   = `^(\S*:[0-9]{1,5})?$`
	amountRule = `^[0-9]+(\.[0-9]+)?[kmgt]?$`
	// hostRule is an address without a login or a query. Without TLS, it is on this computer.
	hostRule = `^((https://|http://(127\.0\.0\.1|localhost)[:/])[^\s@?#]+)?$`
	// familyRule is a font's name without characters that would end it in a list of fonts.
	familyRule = `^[^"'\\,;:{}()<>/\x00-\x1f]{0,64}$`
)

const adminText = "Who can launch administrator sessions, in which they are root in the container: admins, which " +
	"includes you on your own machine, everyone, or none."

func length(name, env, text string) Field {
	return Field{Name: name, Env: env, Kind: Text, Rule: lengthRule, Example: "4h", Text: text}
}

// Fields returns all settings, in the order in which they are shown.
func Fields() []Field {
	integer := func(name, env string, least, most float64, usual int, text string) Field {
		return Field{Name: name, Env: env, Kind: Integer, Least: least, Most: most, Default: usual, Text: text}
	}
	processes := integer("session.processes", "SLIPWAY_SESSION_PROCESSES", 0, session.MaxProcesses,
		session.DefaultProcesses, "Maximum number of processes and threads in each container. 0: no limit. A person "+
			"can have a limit of their own.")
	processes.Example = "8192"
	return append([]Field{
		choice("theme", "SLIPWAY_THEME", "system", "Light, dark, or as the system.", "system", "light", "dark"),
		choice("density", "SLIPWAY_DENSITY", "comfortable", "Row and field spacing.", "comfortable", "compact"),
		choice("language", "SLIPWAY_LANGUAGE", "en", "The language of the user interface.", "en", "ko"),
		choice("closeKeeps", "SLIPWAY_CLOSE_KEEPS", "ask",
			"What Slipway does when you close its window while sessions run. They keep running.",
			"ask", "keep", "quit"),
		integer("zoom", "SLIPWAY_ZOOM", 80, 200, 100,
			"Size of everything in the window on a Linux desktop, in percent. Browsers have their own zoom."),
		on("autostart", "SLIPWAY_AUTOSTART", false,
			"Start Slipway in the background when you log in to your desktop."),
		integer("terminalFont", "SLIPWAY_TERMINAL_FONT", 8, 32, 14, "Font size of all terminals, in pixels."),
		{Name: "terminalFamily", Env: "SLIPWAY_TERMINAL_FAMILY", Kind: Text, Rule: familyRule, Example: "Fira Code",
			Default: "", Text: "A font of this computer for terminals. Empty: the font of Slipway."},
		choice("terminalTheme", "SLIPWAY_TERMINAL_THEME", "follow",
			"The colours of terminals. follow: same as Slipway.", "follow", "light", "dark", "contrast",
			"solarized-light", "solarized-dark"),
		choice("terminalBell", "SLIPWAY_TERMINAL_BELL", "visual", "What a terminal's bell does.",
			"visual", "sound", "none"),
		choice("terminalPaste", "SLIPWAY_TERMINAL_PASTE", "runs", "When to ask before pasting into a terminal: if "+
			"the text runs at once, if it has several lines, or never.", "runs", "several", "never"),
		on("terminalReader", "SLIPWAY_TERMINAL_READER", false, "Support screen readers in terminals."),
		on("notifications", "SLIPWAY_NOTIFICATIONS", true, "Send a desktop or browser notification when a batch "+
			"session ends, a waiting session starts, or a session is about to be reclaimed or was."),
		{Name: "keepHome", Env: "SLIPWAY_KEEP_HOME", Kind: Text, Rule: lengthRule, Example: "30d", Default: "0",
			Text: "Keep home directories as folders until unused for this long. 0: delete them with their sessions."},
		on("openApps", "SLIPWAY_OPEN_APPS", true,
			"Open JupyterLab by itself when a session of a quick start is ready."),
		{Name: "updates", Env: "SLIPWAY_UPDATES", Kind: Text, Rule: hostRule, Default: "",
			Example: "https://downloads.example.org/latest.json", Text: "Address of the release host that is asked " +
				"once a day for a newer version. Empty: no host is asked. Nothing is installed."},
		{Name: "gpu.quantum", Env: "SLIPWAY_GPU_QUANTUM", Kind: Number, Least: 0.01, Most: 1, Default: 0.1,
			Example: "0.25", Text: "The smallest share of a device that can be allocated."},
		choice("gpu.strategy", "SLIPWAY_GPU_STRATEGY", "evenly", "How to place shares. evenly: the device with the "+
			"smallest free part that is large enough. fill: one device after the other.", "evenly", "fill"),
		on("gpu.fragments", "SLIPWAY_GPU_FRAGMENTS", false,
			"Allow a share of more than one device to consist of unequal parts."),
		{Name: "gpu.reserve", Env: "SLIPWAY_GPU_RESERVE", Kind: Text, Rule: amountRule, Example: "1g",
			Text: "Memory of each device that is never allocated."},
		{Name: "gpu.exclude", Env: "SLIPWAY_GPU_EXCLUDE", Kind: List,
			Text: "UUIDs of devices that are never allocated."},
		choice("gpu.guard", "SLIPWAY_GPU_GUARD", "warn", "What to do with a session that exceeds its share of device "+
			"memory.", "warn", "end-process", "end-session"),
		on("gpu.mps", "SLIPWAY_GPU_MPS", false, "Allow users of a shared machine to use MPS, which gives their "+
			"sessions the machine's /dev/shm. Admins can always use it."),
		{Name: "gpu.library", Env: "SLIPWAY_NVML_LIBRARY", Kind: Text, Example: "/opt/nvidia/libnvidia-ml.so.1",
			Text: "Path of NVIDIA's libnvidia-ml.so.1, if it is not in a standard location."},
		processes,
		integer("session.warm", "SLIPWAY_SESSION_WARM", 0, session.MaxWarm, session.DefaultWarm,
			"Maximum number of containers that wait, so that a session like one of the last or pinned ones starts at "+
				"once. 0: none."),
		choice("session.admin", "SLIPWAY_SESSION_ADMIN", "admins", adminText, "admins", "everyone", "none"),
		integer("images.receiveMost", "SLIPWAY_IMAGES_RECEIVE_MOST", 1, 100, 4,
			"Maximum number of unfinished image uploads of one person to this machine."),
		{Name: "images.receiveSize", Env: "SLIPWAY_IMAGES_RECEIVE_SIZE", Kind: Text, Rule: amountRule, Example: "100g",
			Default: "100g", Text: "Maximum total size of the unfinished image uploads of one person."},
		length("images.receiveKeep", "SLIPWAY_IMAGES_RECEIVE_KEEP",
			"How long an interrupted image upload is kept (default: 7d)."),
	}, slices.Concat(idleFields(), serviceFields())...)
}

// idleFields say when idle sessions end.
func idleFields() []Field {
	threshold := func(name, env, what string) Field {
		return Field{Name: name, Env: env, Kind: Number, Most: 100, Example: "5",
			Text: "A session is idle below this utilization of " + what + ", in percent."}
	}
	return []Field{
		length("idle.lifetime", "SLIPWAY_IDLE_LIFETIME", "Sessions end after this time."),
		length("idle.network", "SLIPWAY_IDLE_NETWORK",
			"Interactive sessions end after this time without traffic or activity."),
		length("idle.window", "SLIPWAY_IDLE_WINDOW", "The time over which utilization is averaged."),
		length("idle.grace", "SLIPWAY_IDLE_GRACE", "Time after the start in which utilization is not checked."),
		threshold("idle.cpu", "SLIPWAY_IDLE_CPU", "CPUs"), threshold("idle.memory", "SLIPWAY_IDLE_MEMORY", "memory"),
		threshold("idle.gpu", "SLIPWAY_IDLE_GPU", "GPUs"), threshold("idle.vram", "SLIPWAY_IDLE_VRAM", "GPU memory"),
		on("idle.any", "SLIPWAY_IDLE_ANY", false, "Any metric below its threshold is enough (default: all)."),
		on("idle.park", "SLIPWAY_IDLE_PARK", false,
			"Interactive sessions that these checks end are kept, so that they can be continued."),
	}
}

// serviceFields say where other computers use the services of a machine.
func serviceFields() []Field {
	return []Field{
		{Name: "services.listen", Env: "SLIPWAY_SERVICES_LISTEN", Kind: Text, Rule: portRule, Example: "0.0.0.0:8443",
			Text: "host:port at which other computers use the services of this machine, with TLS and a token. " +
				"Empty: they cannot."},
		{Name: "services.certificate", Env: "SLIPWAY_SERVICES_CERTIFICATE", Kind: Text,
			Example: "/etc/ssl/lab.pem", Text: "Path of the certificate for services.listen, in PEM. Empty: the " +
				"machine makes one that clients have to trust."},
		{Name: "services.key", Env: "SLIPWAY_SERVICES_KEY", Kind: Text, Example: "/etc/ssl/private/lab.pem",
			Text: "Path of the key of services.certificate, in PEM. Empty: it is in the same file."},
	}
}

func choice(name, env, usual, text string, choices ...string) Field {
	return Field{Name: name, Env: env, Kind: Text, Choices: choices, Default: usual, Text: text}
}

func on(name, env string, usual bool, text string) Field {
	return Field{Name: name, Env: env, Kind: Switch, Default: usual, Text: text}
}

// schemaFile is stored next to the settings, where editors find it.
const schemaFile = "settings.schema.json"

type object = map[string]any

// Schema returns the JSON schema of the file.
func Schema() []byte {
	newGroup := func() (group, properties object) {
		properties = object{}
		return object{"type": "object", "additionalProperties": false, "properties": properties}, properties
	}
	top, properties := newGroup()
	top["$schema"], top["title"] = "https://json-schema.org/draft/2020-12/schema", "Slipway's settings"
	properties[schemaName] = object{"type": "string"}
	groups := map[string]object{"": properties}
	for _, field := range Fields() {
		group, name, nested := strings.Cut(field.Name, ".")
		if !nested {
			group, name = "", field.Name
		}
		if groups[group] == nil {
			properties[group], groups[group] = newGroup()
		}
		groups[group][name] = field.schema()
	}
	content, err := json.MarshalIndent(top, "", "  ")
	if err != nil {
		panic(err) // it consists of texts and numbers
	}
	return append(content, '\n')
}

func (f Field) schema() object {
	description := f.Text + " " + f.Env + " overrides it."
	if f.Restart() {
		description += " It is read when Slipway starts."
	}
	s := object{"description": description}
	if f.Default != nil {
		s["default"] = f.Default
	}
	switch f.Kind {
	case Integer, Number:
		s["type"], s["minimum"], s["maximum"] = string(f.Kind), f.Least, f.Most
	case Switch:
		s["type"] = "boolean"
	case List:
		s["type"], s["items"] = "array", object{"type": "string"}
	case Text:
		s["type"] = "string"
		if f.Choices != nil {
			s["enum"] = f.Choices
		}
		if f.Rule != "" {
			s["pattern"] = f.Rule
		}
	}
	return s
}
