package daemon

import "slipway/backend/engine"

// OwnLabels keeps the labels of Slipway's that say something.
func OwnLabels(labels map[string]string) map[string]string {
	kept := map[string]string{}
	for _, name := range engine.ContainerLabels {
		if value := labels[name]; value != "" {
			kept[name] = value
		}
	}
	return kept
}
