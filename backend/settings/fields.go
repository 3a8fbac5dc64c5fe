package settings

import "slipway/backend/session"

// Kind is what a value is.
type Kind string

// The kinds of values. Text that has a rule of its own is checked by [Field].Check.
const (
	Text    Kind = "text"
	Integer Kind = "integer"
	Number  Kind = "number"
	Switch  Kind = "switch"
	List    Kind = "list" // of texts
)

// Field is one setting.
type Field struct {
	Name    string   // its path in the file: theme, gpu.quantum
	Env     string   // the variable that overrides it
	Kind    Kind     // of its value
	Choices []string // of a Text: nothing else is allowed; nil: anything that Check allows
	Least   float64  // of an Integer or Number
	Most    float64  // of an Integer or Number
	Default any      // nil: nothing is set
	Text    string   // what it is about, one sentence
	Restart bool     // it is read when Slipway starts
	Rule    string   // of a Text without Choices: what it must match; "": anything
	Example string   // what a value looks like, for a hint
}

// What lengths of time and amounts of memory look like.
const (
	lengthRule = `^(0|[1-9][0-9]*[smhdw])$`
	amountRule = `^[0-9]+(\.[0-9]+)?[kmgt]?$`
	// familyRule is a font's name without what would end it in a list of fonts.
	familyRule = `^[^"'\\,;:{}()<>/\x00-\x1f]{0,64}$`
)

const percent = 100

const notificationsText = "Whether the desktop, or else the browser, tells that a batch session has ended, " +
	"that one which waited runs, and that an idle one is about to be reclaimed."

const strategyText = "Which device a part is taken of: evenly, the one with the smallest part that suffices; " +
	"fill, one after the other."

// Fields are all settings, in the order in which they are shown.
func Fields() []Field {
	choice := func(name, env, usual, text string, choices ...string) Field {
		return Field{Name: name, Env: env, Kind: Text, Choices: choices, Default: usual, Text: text}
	}
	length := func(name, env, text string) Field {
		return Field{Name: name, Env: env, Kind: Text, Rule: lengthRule, Example: "4h", Restart: true, Text: text}
	}
	threshold := func(name, env, what string) Field {
		return Field{Name: name, Env: env, Kind: Number, Most: percent, Example: "5", Restart: true,
			Text: "Use of " + what + ", in percent, below which a session idles."}
	}
	strategy := choice("gpu.strategy", "SLIPWAY_GPU_STRATEGY", "evenly", strategyText, "evenly", "fill")
	guard := choice("gpu.guard", "SLIPWAY_GPU_GUARD", "warn",
		"What befalls a session that stays above its share of a device's memory.", "warn", "end-process", "end-session")
	strategy.Restart, guard.Restart = true, true
	return []Field{
		choice("theme", "SLIPWAY_THEME", "system", "Light, dark, or as the system says.", "system", "light", "dark"),
		choice("density", "SLIPWAY_DENSITY", "comfortable", "How much air rows and fields have.", "comfortable",
			"compact"),
		choice("language", "SLIPWAY_LANGUAGE", "en", "The language of the user interface.", "en", "ko"),
		choice("closeKeeps", "SLIPWAY_CLOSE_KEEPS", "ask",
			"What closing the window does with Slipway while sessions are live; they go on in any case.", "ask", "keep",
			"quit"),
		{Name: "zoom", Env: "SLIPWAY_ZOOM", Kind: Integer, Least: 80, Most: 200, Default: 100,
			Text: "How large everything in the window is on a Linux desktop, in percent; a browser has its own zoom."},
		{Name: "autostart", Env: "SLIPWAY_AUTOSTART", Kind: Switch, Default: false,
			Text: "Whether Slipway starts in the background when you log in to a Linux desktop."},
		{Name: "terminalFont", Env: "SLIPWAY_TERMINAL_FONT", Kind: Integer, Least: 8, Most: 32, Default: 14,
			Text: "Size of every terminal's letters, in pixels."},
		{Name: "terminalFamily", Env: "SLIPWAY_TERMINAL_FAMILY", Kind: Text, Rule: familyRule, Example: "Fira Code",
			Default: "", Text: "A font of this computer that terminals use before Slipway's own; empty: none."},
		choice("terminalTheme", "SLIPWAY_TERMINAL_THEME", "follow",
			"The colours of terminals; follow: those of the application.", "follow", "light", "dark", "contrast",
			"solarized-light", "solarized-dark"),
		choice("terminalBell", "SLIPWAY_TERMINAL_BELL", "visual", "What a terminal's bell does.", "visual", "sound",
			"none"),
		choice("terminalPaste", "SLIPWAY_TERMINAL_PASTE", "runs", "When to ask before a paste into a terminal: where "+
			"it would run at once, wherever it has several lines, never.", "runs", "several", "never"),
		{Name: "terminalReader", Env: "SLIPWAY_TERMINAL_READER", Kind: Switch, Default: false,
			Text: "Whether screen readers are told what terminals print."},
		{Name: "notifications", Env: "SLIPWAY_NOTIFICATIONS", Kind: Switch, Default: true,
			Text: notificationsText},
		{Name: "gpu.quantum", Env: "SLIPWAY_GPU_QUANTUM", Kind: Number, Least: 0.01, Most: 1, Default: 0.1,
			Example: "0.25", Restart: true, Text: "The smallest share of a device that is given."},
		strategy,
		{Name: "gpu.fragments", Env: "SLIPWAY_GPU_FRAGMENTS", Kind: Switch, Default: false, Restart: true,
			Text: "Whether more than one device may be pieced together from unequal parts."},
		{Name: "gpu.reserve", Env: "SLIPWAY_GPU_RESERVE", Kind: Text, Rule: amountRule, Example: "1g", Restart: true,
			Text: "Memory of each device that is promised to nobody."},
		{Name: "gpu.exclude", Env: "SLIPWAY_GPU_EXCLUDE", Kind: List, Restart: true,
			Text: "UUIDs of devices that are never given."},
		guard,
		{Name: "gpu.mps", Env: "SLIPWAY_GPU_MPS", Kind: Switch, Default: false, Restart: true,
			Text: "Whether users of a shared machine may use MPS, which gives their sessions the machine's /dev/shm. " +
				"Admins may in any case."},
		{Name: "gpu.library", Env: "SLIPWAY_NVML_LIBRARY", Kind: Text, Restart: true,
			Example: "/opt/nvidia/libnvidia-ml.so.1",
			Text:    "Path of NVIDIA's libnvidia-ml.so.1, where the driver keeps it outside the usual places."},
		{Name: "session.processes", Env: "SLIPWAY_SESSION_PROCESSES", Kind: Integer, Most: session.MaxProcesses,
			Default: session.DefaultProcesses, Example: "8192", Restart: true,
			Text: "Most processes and threads in each container of a session; 0: no limit. A person can have a limit " +
				"of their own."},
		{Name: "images.receiveMost", Env: "SLIPWAY_IMAGES_RECEIVE_MOST", Kind: Integer, Least: 1, Most: 100, Default: 4,
			Restart: true, Text: "How many images one person may have on the way to this machine from other machines."},
		{Name: "images.receiveSize", Env: "SLIPWAY_IMAGES_RECEIVE_SIZE", Kind: Text, Rule: amountRule, Example: "100g",
			Default: "100g", Restart: true,
			Text: "How much the images that one person has on the way to this machine may take together."},
		length("images.receiveKeep", "SLIPWAY_IMAGES_RECEIVE_KEEP",
			"How long an image that stopped arriving is kept; usually 7d."),
		length("idle.lifetime", "SLIPWAY_IDLE_LIFETIME", "How long a session lives at most."),
		length("idle.network", "SLIPWAY_IDLE_NETWORK",
			"How long an interactive session may be without traffic or activity."),
		length("idle.window", "SLIPWAY_IDLE_WINDOW", "The length of time over which use is averaged."),
		length("idle.grace", "SLIPWAY_IDLE_GRACE", "How long after its start a session's use is not judged."),
		threshold("idle.cpu", "SLIPWAY_IDLE_CPU", "CPUs"), threshold("idle.memory", "SLIPWAY_IDLE_MEMORY", "memory"),
		threshold("idle.gpu", "SLIPWAY_IDLE_GPU", "GPUs"), threshold("idle.vram", "SLIPWAY_IDLE_VRAM", "GPU memory"),
		{Name: "idle.any", Env: "SLIPWAY_IDLE_ANY", Kind: Switch, Default: false, Restart: true,
			Text: "Whether one threshold is enough; usually all must be missed."},
	}
}
