package autostart

import (
	"errors"

	"golang.org/x/sys/windows/registry"
)

// runKey is the key whose values Windows runs when this user logs in, and runValue the name of ours.
const runKey, runValue = `Software\Microsoft\Windows\CurrentVersion\Run`, "Slipway"

// setRun writes or removes the value. What the user turned off in the settings of Windows stays off.
func setRun(command string, on bool) error {
	key, _, err := registry.CreateKey(registry.CURRENT_USER, runKey, registry.SET_VALUE)
	if err != nil {
		return err
	}
	if on {
		err = key.SetStringValue(runValue, command)
	} else {
		err = key.DeleteValue(runValue)
	}
	return errors.Join(err, key.Close())
}
