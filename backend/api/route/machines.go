package route

import (
	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
)

// Routes of machines, devices, usage, images and environments.
var (
	Doctor = at[None, []session.Check]("doctor", "GET /doctor",
		"Check the machine: what is missing, and how to fix it.",
		Param{"agent", "whose machine; empty: this computer's"})
	Machines    = at[None, []api.Machine]("machines", "GET /machines", "List the agents and their machines.")
	Directories = at[None, session.DirectoryListing]("directories", "GET /machines/{agent}/directories",
		"List the directories in a directory of an agent's machine.",
		Param{"path", "absolute path; empty: the person's home"})
	ImageSend = at[api.ImageSending, api.Operation]("image-send", "POST /images/send", "Send an image from one "+
		"agent to another without a registry, as an operation. Only the layers that are missing there are sent.")
	Images = at[None, []hub.Image]("images", "GET /images", "List the images that are on the agents' machines.",
		agentQuery...)
	ImagePull = at[api.ImagePull, api.Operation]("image-pull", "POST /images/pull",
		"Pull an image, as an operation, which continues in the background.")
	ImageRemove = at[api.ImageRemoval, api.Operation]("image-remove", "POST /images/remove",
		"Remove images, as an operation. One that a session uses stays.")
	ImageDisk = at[None, api.ImageDisk]("image-disk", "GET /images/disk", "Show the disk use of images on a machine.",
		Param{"agent", "whose machine; empty: this computer"})
	Environments = at[None, []hub.Environment]("environments", "GET /environments",
		"List the image families that the launcher offers.")
	EnvironmentFile = at[None, api.EnvironmentFile]("environment-file", "GET /environments/file",
		"Show the path of the user's catalogue of environments, and its problems.")
	Devices = at[None, []api.DeviceBoard]("devices", "GET /devices",
		"Show the devices of every agent, their load, and who holds them.", agentQuery...)
	DeviceHistory = at[None, []session.DevicePoint]("device-history", "GET /machines/{agent}/devices/{device}/history",
		"Read the samples of a device, one a minute beyond the last hour.",
		Param{"since", "only newer ones; empty: the last hour"})
	Resources = at[None, []api.ResourceSummary]("resources", "GET /resources",
		"Show each machine's resources: total, allocated, in use, and allocated to own sessions.")
	Accounts = at[None, api.UsageReport]("accounts", "GET /usage", "Read the usage in a period.",
		accountQuery...)
	AccountsCSV = at[None, None]("accounts-csv", "GET /usage.csv",
		"Read the usage in a period as a CSV table.", accountQuery...).streams(Text)
	ServiceAccounts = at[None, hub.ServiceReport]("service-accounts", "GET /usage/services",
		"Read what was asked of services in a period, and what their replicas used.", serviceAccountQuery...)
	ServiceAccountsCSV = at[None, None]("service-accounts-csv", "GET /usage/services.csv",
		"Read the accounts of services in a period as a CSV table.", serviceAccountQuery...).streams(Text)
)

// serviceAccountQuery has the parameters of the accounts of services.
var serviceAccountQuery = []Param{
	accountQuery[0], accountQuery[1], accountQuery[2],
	{"by", "service, revision, token or owner: group rows; empty: each revision and token, and replicas, separately"},
	{"service", "only services of this name"},
	agentQuery[0],
}

// accountQuery has the parameters of accounts.
var accountQuery = []Param{
	{"from", "a time or a day such as 2031-05-01, which begins at midnight here; empty: 30 days before to"},
	{"to", "a time, or the last day that counts; empty: now"},
	{"bucket", "hour or day: rows for each; empty: for the whole period"},
	{"by", "session, day, label, owner or device: group rows; empty: each session and device separately"},
	{"label", "only sessions of this project"},
	agentQuery[0],
}
