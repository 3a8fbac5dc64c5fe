package hub

// person is what belongs to a person rather than to a machine: what they
// launched, their presets and their settings.
type person struct {
	*shared
	file      SettingsFile
	autostart Autostarter // nil: none

	// mu guards these.
	recents  []Recent
	presets  []Preset // those of the person, in the order of their creation
	settings Settings
}
