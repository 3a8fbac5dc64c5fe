package route

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/session"
)

// Routes of agents, their keys and clients, and operations.
var (
	Agents   = at[None, []api.Agent]("agents", "GET /agents", "List agents and their connections.")
	AgentAdd = at[api.AgentRequest, api.Operation]("agent-add", "POST /agents", "Add an agent, or only probe one, "+
		"as an operation, which may ask for a password, a host key or a pairing code.")
	Agent       = at[None, api.Agent]("agent", "GET /agents/{agent}", "Show one agent.")
	AgentUpdate = at[api.AgentUpdate, api.Agent]("agent-update", "PATCH /agents/{agent}",
		"Rename an agent or change its resource group.")
	AgentRemove = at[api.AgentRemoval, api.Operation]("agent-remove", "POST /agents/{agent}/remove",
		"Remove an agent, as an operation. Its sessions keep running unless it is uninstalled.")
	AgentProbe = at[None, api.Operation]("agent-probe", "POST /agents/{agent}/probe",
		"Probe an agent's machine again, as an operation.")
	AgentUpgrade = at[None, api.Operation]("agent-upgrade", "POST /agents/{agent}/upgrade",
		"Upgrade an agent to this version, as an operation. Its sessions keep running.")
	AgentReconnect = at[None, api.Operation]("agent-reconnect", "POST /agents/{agent}/reconnect",
		"Reconnect an agent now, as an operation, which may ask for input.")
	AgentAnswer = at[api.AgentAnswer, api.Agent]("agent-answer", "POST /agents/{agent}/answer",
		"Confirm or reject the changed key of an agent.")
	PairedClients = at[None, []api.PairedClient]("paired-clients", "GET /agents/{agent}/clients",
		"List the computers that are paired with an agent.")
	ClientRevoke = at[None, None]("client-revoke", "DELETE /agents/{agent}/clients/{fingerprint}",
		"Revoke a paired computer and close its connections.")
	AgentAudit = at[None, []session.AuditEntry]("agent-audit", "GET /agents/{agent}/audit",
		"Read the audit log of an agent that you administer, oldest first.",
		Param{"limit", "how many of the newest entries, 1 to 500; 100 if empty"},
		Param{"before", "only entries older than this time"},
		Param{"owner", "only entries of this person"}, Param{"text", "words that an entry contains"},
		Param{"failed", "1 for failures only"}, Param{"security", "1 for security events only"})
	AgentLimits = at[None, api.PersonLimits]("agent-limits", "GET /agents/{agent}/limits",
		"Read the limits of each person on an agent that you administer.")
	AgentLimitSet = at[session.Allowance, None]("agent-limit-set", "PUT /agents/{agent}/limits/{owner}",
		"Set the limits of a person on an agent that you administer.")
	AgentLimitUnset = at[None, None]("agent-limit-unset", "DELETE /agents/{agent}/limits/{owner}",
		"Remove the limits of a person.")
	PairCode = at[api.PairRequest, api.PairCode]("pair-code", "POST /agents/{agent}/pair",
		"Create a code to pair a computer with an agent.").answers(http.StatusCreated)
	AgentRotate = at[None, api.KeyRotation]("agent-rotate", "POST /agents/{agent}/rotate",
		"Have an agent change its key. Paired computers accept the new one by the old one's signature.")
	KeyRotate = at[None, api.KeyRotation]("key-rotate", "POST /key/rotate",
		"Change the key by which agents know this computer.")
	Operations = at[None, []api.Operation]("operations", "GET /operations", "List the operations, newest first.")
	Operation  = at[None, api.Operation]("operation", "GET /operations/{id}",
		"Show one operation.").answers(http.StatusOK)
	OperationAnswer = at[api.PromptAnswer, api.Operation]("operation-answer", "POST /operations/{id}/answer",
		"Answer what an operation asks.").answers(http.StatusOK)
	OperationCancel = at[None, api.Operation]("operation-cancel", "POST /operations/{id}/cancel",
		"Cancel an operation. It ends a moment later and leaves nothing half done.")
)
