package api

import "slipway/backend/hub"

// The hub's types that are the wire as they are.
type (
	Operation = hub.Operation
	OpStep    = hub.Step
	Progress  = hub.Progress
	Prompt    = hub.Prompt
)

// PromptAnswer answers the prompt of an operation. A host-key or a confirm is
// answered with yes or no.
type PromptAnswer struct {
	Prompt string `json:"prompt"` // its id
	Text   string `json:"text"`
}
