package route

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/session"
)

// Routes of agents, their keys and clients, and operations.
var (
	Agents = Route[None, []api.Agent]{&Endpoint{Name: "agents", Pattern: "GET /agents",
		Summary: "List agents and their connections."}}
	AgentAdd = Route[api.AgentRequest, api.Operation]{&Endpoint{Name: "agent-add", Pattern: "POST /agents",
		Summary: "Add an agent, or only probe one, as an operation, which may ask for a password, " +
			"a host key or a pairing code.", Status: http.StatusAccepted}}
	Agent = Route[None, api.Agent]{&Endpoint{Name: "agent", Pattern: "GET /agents/{agent}",
		Summary: "Show one agent."}}
	AgentUpdate = Route[api.AgentUpdate, api.Agent]{&Endpoint{Name: "agent-update", Pattern: "PATCH /agents/{agent}",
		Summary: "Rename an agent or change its resource group."}}
	AgentRemove = Route[api.AgentRemoval, api.Operation]{&Endpoint{Name: "agent-remove",
		Pattern: "POST /agents/{agent}/remove",
		Summary: "Remove an agent, as an operation. Its sessions keep running unless it is uninstalled.",
		Status:  http.StatusAccepted}}
	AgentProbe = Route[None, api.Operation]{&Endpoint{Name: "agent-probe", Pattern: "POST /agents/{agent}/probe",
		Summary: "Probe an agent's machine again, as an operation.", Status: http.StatusAccepted}}
	AgentUpgrade = Route[None, api.Operation]{&Endpoint{Name: "agent-upgrade", Pattern: "POST /agents/{agent}/upgrade",
		Summary: "Upgrade an agent to this version, as an operation. Its sessions keep running.",
		Status:  http.StatusAccepted}}
	AgentReconnect = Route[None, api.Operation]{&Endpoint{Name: "agent-reconnect",
		Pattern: "POST /agents/{agent}/reconnect",
		Summary: "Reconnect an agent now, as an operation, which may ask for input.",
		Status:  http.StatusAccepted}}
	AgentAnswer = Route[api.AgentAnswer, api.Agent]{&Endpoint{Name: "agent-answer",
		Pattern: "POST /agents/{agent}/answer",
		Summary: "Confirm or reject the changed key of an agent."}}
	PairedClients = Route[None, []api.PairedClient]{&Endpoint{Name: "paired-clients",
		Pattern: "GET /agents/{agent}/clients",
		Summary: "List the computers that are paired with an agent."}}
	ClientRevoke = Route[None, None]{&Endpoint{Name: "client-revoke",
		Pattern: "DELETE /agents/{agent}/clients/{fingerprint}",
		Summary: "Revoke a paired computer and close its connections.", Status: http.StatusNoContent}}
	AgentAudit = Route[None, []session.AuditEntry]{&Endpoint{Name: "agent-audit", Pattern: "GET /agents/{agent}/audit",
		Summary: "Read who did what with an agent that one rules, oldest first.",
		Query: []Param{{"limit", "how many of the newest entries, 1 to 500; 100 if empty"},
			{"before", "time of the oldest entry that is known: only older ones"},
			{"owner", "only what this person did"}, {"text", "words, each of which is somewhere in an entry"},
			{"failed", "1 for what was refused or went wrong"}, {"security", "1 for security events only"}}}}
	AgentLimits = Route[None, api.PersonLimits]{&Endpoint{Name: "agent-limits", Pattern: "GET /agents/{agent}/limits",
		Summary: "Read what each person may hold on an agent that one rules."}}
	AgentLimitSet = Route[session.Allowance, None]{&Endpoint{Name: "agent-limit-set",
		Pattern: "PUT /agents/{agent}/limits/{owner}",
		Summary: "Set what a person may hold on an agent that one rules.", Status: http.StatusNoContent}}
	AgentLimitUnset = Route[None, None]{&Endpoint{Name: "agent-limit-unset",
		Pattern: "DELETE /agents/{agent}/limits/{owner}",
		Summary: "Remove the limits of a person.", Status: http.StatusNoContent}}
	PairCode = Route[api.PairRequest, api.PairCode]{&Endpoint{Name: "pair-code", Pattern: "POST /agents/{agent}/pair",
		Summary: "Create a code to pair a computer with an agent.", Status: http.StatusCreated}}
	AgentRotate = Route[None, api.KeyRotation]{&Endpoint{Name: "agent-rotate", Pattern: "POST /agents/{agent}/rotate",
		Summary: "Have an agent change its key. Paired computers accept the new one by the old one's signature."}}
	KeyRotate = Route[None, api.KeyRotation]{&Endpoint{Name: "key-rotate", Pattern: "POST /key/rotate",
		Summary: "Change the key by which agents know this computer."}}
	Operations = Route[None, []api.Operation]{&Endpoint{Name: "operations", Pattern: "GET /operations",
		Summary: "List the operations, newest first."}}
	Operation = Route[None, api.Operation]{&Endpoint{Name: "operation", Pattern: "GET /operations/{id}",
		Summary: "Show one operation."}}
	OperationAnswer = Route[api.PromptAnswer, api.Operation]{&Endpoint{Name: "operation-answer",
		Pattern: "POST /operations/{id}/answer", Summary: "Answer what an operation asks."}}
	OperationCancel = Route[None, api.Operation]{&Endpoint{Name: "operation-cancel",
		Pattern: "POST /operations/{id}/cancel",
		Summary: "Cancel an operation. It ends a moment later and leaves nothing half done.",
		Status:  http.StatusAccepted}}
)
