package api

import "slipway/backend/hub"

// These types of the hub are the wire as they are.
//
//nolint:revive // each has its comment where it is declared
type (
	Agent           = hub.Agent
	AgentUpdate     = hub.AgentUpdate
	Connection      = hub.Connection
	DeviceBoard     = hub.Board
	DeviceState     = hub.DeviceState
	Event           = hub.Event
	ImageSending    = hub.ImageSending
	KeyRotation     = hub.Rotation
	Machine         = hub.Machine
	Operation       = hub.Operation
	OpStep          = hub.Step
	Progress        = hub.Progress
	Prompt          = hub.Prompt
	Question        = hub.Question
	RecentUpdate    = hub.RecentUpdate
	ResourceSummary = hub.Resources
	Session         = hub.Session
	Snapshot        = hub.Snapshot
	UsageReport     = hub.Report
	Version         = hub.Version
	Window          = hub.Window
)

// PromptAnswer answers the prompt of an operation. A host-key or a confirm is answered with yes or no.
type PromptAnswer struct {
	Prompt string `json:"prompt"` // its id
	Text   string `json:"text"`
}
