package route

import (
	"slipway/backend/api"
	"slipway/backend/runtimes"
	"slipway/backend/session"
)

// Routes of inference services.
var (
	Services = at[None, []api.Service]("services", "GET /services",
		"List the inference services, with their replicas and where they are reached.", agentQuery...)
	ServiceDefinition = at[None, runtimes.Definition]("service-definition", "GET /services/definition",
		"Read how a folder's model is served, from its model-definition.yaml. Faults have the line in their fields.",
		Param{"folder", "ID or name of the folder"},
		Param{"path", "path of the file or its directory in the folder; empty: the folder itself"}, agentQuery[0])
	Service = at[None, api.Service]("service", "GET /services/{service}",
		"Show an inference service with its replicas, revisions, tokens and events.", agentQuery...)
	ServiceRecipe = at[None, api.ServiceRecipe]("service-recipe", "GET /services/{service}/recipe",
		"Read a service as a recipe, without tokens and secrets.", agentQuery...)
	ServiceDeploy = at[session.DeployRequest, api.Service]("service-deploy", "POST /services",
		"Create a service, or give it another revision. The agent is that of the spec; empty: this computer.")
	ServiceChange = at[session.ServiceChange, api.Service]("service-change", "PATCH /services/{service}",
		"Change the replicas or rules of a service, or return to an earlier revision.", agentQuery...)
	ServiceRemove = at[None, None]("service-remove", "DELETE /services/{service}",
		"Stop a service and forget it. Its replicas first answer what they are asked.", agentQuery...)
	ServiceToken = at[session.TokenRequest, session.NewToken]("service-token", "POST /services/{service}/tokens",
		"Make a token with which clients use a service. Only this answer has its text.", agentQuery...)
	ServiceChat = at[api.Chat, None]("service-chat", "POST /services/{service}/chat",
		"Continue a conversation with a model. The answer is a stream of events in OpenAI's form.",
		agentQuery...).streams(Text)
	ServiceRevoke = at[None, None]("service-revoke", "DELETE /services/{service}/tokens/{token}",
		"Make a token invalid at once.", agentQuery...)
)
