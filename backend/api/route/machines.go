package route

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
)

// Routes of machines, devices, usage, images and environments.
var (
	Doctor = Route[None, []session.Check]{&Endpoint{Name: "doctor", Pattern: "GET /doctor",
		Summary: "Check the machine: what is missing, and how to fix it.",
		Query:   []Param{{"agent", "whose machine; empty: this computer's"}}}}
	Machines = Route[None, []api.Machine]{&Endpoint{Name: "machines", Pattern: "GET /machines",
		Summary: "List the agents and their machines."}}
	Directories = Route[None, session.DirectoryListing]{&Endpoint{Name: "directories",
		Pattern: "GET /machines/{agent}/directories",
		Summary: "List the directories in a directory of an agent's machine.",
		Query:   []Param{{"path", "absolute path; empty: the person's home"}}}}
	ImageSend = Route[api.ImageSending, api.Operation]{&Endpoint{Name: "image-send", Pattern: "POST /images/send",
		Summary: "Bring an image from one agent to another without a registry, as an operation. Only the layers " +
			"that are missing there travel.", Status: http.StatusAccepted}}
	Images = Route[None, []hub.Image]{&Endpoint{Name: "images", Pattern: "GET /images",
		Summary: "List the images that are on the agents' machines.", Query: agentQuery}}
	ImagePull = Route[api.ImagePull, api.Operation]{&Endpoint{Name: "image-pull", Pattern: "POST /images/pull",
		Summary: "Pull an image, as an operation, which continues in the background.",
		Status:  http.StatusAccepted}}
	ImageRemove = Route[api.ImageRemoval, api.Operation]{&Endpoint{Name: "image-remove", Pattern: "POST /images/remove",
		Summary: "Remove images, as an operation. One that a session uses stays.", Status: http.StatusAccepted}}
	ImageDisk = Route[None, api.ImageDisk]{&Endpoint{Name: "image-disk", Pattern: "GET /images/disk",
		Summary: "Show the disk use of images on a machine.",
		Query:   []Param{{"agent", "whose machine; empty: this computer"}}}}
	Environments = Route[None, []hub.Environment]{&Endpoint{Name: "environments", Pattern: "GET /environments",
		Summary: "List the image families that the launcher offers."}}
	EnvironmentFile = Route[None, api.EnvironmentFile]{&Endpoint{Name: "environment-file",
		Pattern: "GET /environments/file",
		Summary: "Show the path of the user's catalogue of environments, and its problems."}}
	Devices = Route[None, []api.DeviceBoard]{&Endpoint{Name: "devices", Pattern: "GET /devices",
		Summary: "Show the devices of every agent, their load, and who holds them.", Query: agentQuery}}
	DeviceHistory = Route[None, []session.DevicePoint]{&Endpoint{Name: "device-history",
		Pattern: "GET /machines/{agent}/devices/{device}/history",
		Summary: "Read the samples of a device, one a minute beyond the last hour.",
		Query:   []Param{{"since", "only newer ones; empty: the last hour"}}}}
	Resources = Route[None, []api.ResourceSummary]{&Endpoint{Name: "resources", Pattern: "GET /resources",
		Summary: "Show each machine's resources: total, allocated, in use, and allocated to own sessions."}}
	Accounts = Route[None, api.UsageReport]{&Endpoint{Name: "accounts", Pattern: "GET /usage",
		Summary: "Read what was used in a span of time.", Query: accountQuery}}
	AccountsCSV = Route[None, None]{&Endpoint{Name: "accounts-csv", Pattern: "GET /usage.csv",
		Summary: "Read what was used in a span of time as a CSV table.", Query: accountQuery, Stream: Text}}
)

// accountQuery is how accounts are asked for.
var accountQuery = []Param{
	{"from", "a time or a day such as 2031-05-01, which begins at midnight here; empty: 30 days before to"},
	{"to", "a time or a day, which is then the last one counted; empty: now"},
	{"bucket", "hour or day: rows for each of them; empty: for the whole span"},
	{"by", "session, day, label, owner or device: sum rows up; empty: each session and device by itself"},
	{"label", "only sessions of this project"},
	agentQuery[0],
}
