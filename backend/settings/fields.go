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

const notificationsText = "Send a desktop or browser notification when a batch session ends, " +
	"a waiting session starts, or an idle session is about to be reclaimed."

const strategyText = "How to place shares. evenly: the device with the smallest free part that is large " +
	"enough. fill: one device after the other."

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
			Text: "A session is idle below this utilization of " + what + ", in percent."}
	}
	strategy := choice("gpu.strategy", "SLIPWAY_GPU_STRATEGY", "evenly", strategyText, "evenly", "fill")
	guard := choice("gpu.guard", "SLIPWAY_GPU_GUARD", "warn",
		"What to do with a session that exceeds its share of device memory.", "warn", "end-process", "end-session")
	strategy.Restart, guard.Restart = true, true
	return []Field{
		choice("theme", "SLIPWAY_THEME", "system", "Light, dark, or as the system.", "system", "light", "dark"),
		choice("density", "SLIPWAY_DENSITY", "comfortable", "Row and field spacing.", "comfortable",
			"compact"),
		choice("language", "SLIPWAY_LANGUAGE", "en", "The language of the user interface.", "en", "ko"),
		choice("closeKeeps", "SLIPWAY_CLOSE_KEEPS", "ask",
			"What Slipway does when you close its window while sessions run. They keep running.", "ask", "keep",
			"quit"),
		{Name: "zoom", Env: "SLIPWAY_ZOOM", Kind: Integer, Least: 80, Most: 200, Default: 100,
			Text: "Size of everything in the window on a Linux desktop, in percent. Browsers have their own zoom."},
		{Name: "autostart", Env: "SLIPWAY_AUTOSTART", Kind: Switch, Default: false,
			Text: "Start Slipway in the background when you log in to a Linux desktop."},
		{Name: "terminalFont", Env: "SLIPWAY_TERMINAL_FONT", Kind: Integer, Least: 8, Most: 32, Default: 14,
			Text: "Font size of all terminals, in pixels."},
		{Name: "terminalFamily", Env: "SLIPWAY_TERMINAL_FAMILY", Kind: Text, Rule: familyRule, Example: "Fira Code",
			Default: "", Text: "A font of this computer for terminals. Empty: the font of Slipway."},
		choice("terminalTheme", "SLIPWAY_TERMINAL_THEME", "follow",
			"The colours of terminals. follow: same as Slipway.", "follow", "light", "dark", "contrast",
			"solarized-light", "solarized-dark"),
		choice("terminalBell", "SLIPWAY_TERMINAL_BELL", "visual", "What a terminal's bell does.", "visual", "sound",
			"none"),
		choice("terminalPaste", "SLIPWAY_TERMINAL_PASTE", "runs", "When to ask before pasting into a terminal: if "+
			"the text runs at once, if it has several lines, or never.", "runs", "several", "never"),
		{Name: "terminalReader", Env: "SLIPWAY_TERMINAL_READER", Kind: Switch, Default: false,
			Text: "Support screen readers in terminals."},
		{Name: "notifications", Env: "SLIPWAY_NOTIFICATIONS", Kind: Switch, Default: true,
			Text: notificationsText},
		{Name: "gpu.quantum", Env: "SLIPWAY_GPU_QUANTUM", Kind: Number, Least: 0.01, Most: 1, Default: 0.1,
			Example: "0.25", Restart: true, Text: "The smallest share of a device that can be allocated."},
		strategy,
		{Name: "gpu.fragments", Env: "SLIPWAY_GPU_FRAGMENTS", Kind: Switch, Default: false, Restart: true,
			Text: "Allow a share of more than one device to consist of unequal parts."},
		{Name: "gpu.reserve", Env: "SLIPWAY_GPU_RESERVE", Kind: Text, Rule: amountRule, Example: "1g", Restart: true,
			Text: "Memory of each device that is never allocated."},
		{Name: "gpu.exclude", Env: "SLIPWAY_GPU_EXCLUDE", Kind: List, Restart: true,
			Text: "UUIDs of devices that are never allocated."},
		guard,
		{Name: "gpu.mps", Env: "SLIPWAY_GPU_MPS", Kind: Switch, Default: false, Restart: true,
			Text: "Allow users of a shared machine to use MPS, which gives their sessions the machine's /dev/shm. " +
				"Admins can always use it."},
		{Name: "gpu.library", Env: "SLIPWAY_NVML_LIBRARY", Kind: Text, Restart: true,
			Example: "/opt/nvidia/libnvidia-ml.so.1",
			Text:    "Path of NVIDIA's libnvidia-ml.so.1, if it is not in a standard location."},
		{Name: "session.processes", Env: "SLIPWAY_SESSION_PROCESSES", Kind: Integer, Most: session.MaxProcesses,
			Default: session.DefaultProcesses, Example: "8192", Restart: true,
			Text: "Maximum number of processes and threads in each container. 0: no limit. A person can have a " +
				"limit of their own."},
		{Name: "images.receiveMost", Env: "SLIPWAY_IMAGES_RECEIVE_MOST", Kind: Integer, Least: 1, Most: 100, Default: 4,
			Restart: true, Text: "Maximum number of unfinished image uploads of one person to this machine."},
		{Name: "images.receiveSize", Env: "SLIPWAY_IMAGES_RECEIVE_SIZE", Kind: Text, Rule: amountRule, Example: "100g",
			Default: "100g", Restart: true,
			Text: "Maximum total size of the unfinished image uploads of one person."},
		length("images.receiveKeep", "SLIPWAY_IMAGES_RECEIVE_KEEP",
			"How long an interrupted image upload is kept (default: 7d)."),
		length("idle.lifetime", "SLIPWAY_IDLE_LIFETIME", "Sessions end after this time."),
		length("idle.network", "SLIPWAY_IDLE_NETWORK",
			"Interactive sessions end after this time without traffic or activity."),
		length("idle.window", "SLIPWAY_IDLE_WINDOW", "The time over which utilization is averaged."),
		length("idle.grace", "SLIPWAY_IDLE_GRACE", "Time after the start in which utilization is not checked."),
		threshold("idle.cpu", "SLIPWAY_IDLE_CPU", "CPUs"), threshold("idle.memory", "SLIPWAY_IDLE_MEMORY", "memory"),
		threshold("idle.gpu", "SLIPWAY_IDLE_GPU", "GPUs"), threshold("idle.vram", "SLIPWAY_IDLE_VRAM", "GPU memory"),
		{Name: "idle.any", Env: "SLIPWAY_IDLE_ANY", Kind: Switch, Default: false, Restart: true,
			Text: "Any metric below its threshold is enough (default: all)."},
	}
}
