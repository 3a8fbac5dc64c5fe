// Package route declares every endpoint of the loopback API once: method, path, parameters, and the types of its
// request and its answer. The server has a handler of those types for each route, Go programs call it with [Route.Ask],
// and build/tsgen generates the OpenAPI document and the client of the user interface from it.
package route

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"slipway/backend/api"
)

// Root is the prefix of every path.
const Root = "/api/v1"

// Route is one endpoint with a request In and an answer Out, both as JSON. [None] means no body.
type Route[In, Out any] struct{ *Endpoint }

// Endpoint is a [Route] without its types, so that code that does not need them is compiled once. It is immutable.
type Endpoint struct {
	Name    string // in the OpenAPI document; in TypeScript without dashes
	Pattern string // method, and path below Root, such as "GET /sessions/{id}"
	Summary string
	Query   []Param
	Status  int // on success
	Stream  Stream

	query string // set by With, such as "&state=live"
	body  any    // set by Body, or nil
}

// at declares a route. Its status is 202 if it starts an operation, 204 if it answers nothing, else 200.
func at[In, Out any](name, pattern, summary string, query ...Param) Route[In, Out] {
	status := http.StatusOK
	switch any(*new(Out)).(type) {
	case None:
		status = http.StatusNoContent
	case api.Operation:
		status = http.StatusAccepted
	}
	return Route[In, Out]{&Endpoint{Name: name, Pattern: pattern, Summary: summary, Query: query, Status: status}}
}

// answers sets another status.
func (r Route[In, Out]) answers(status int) Route[In, Out] {
	r.Status = status
	return r
}

// streams declares that a route answers with a stream.
func (r Route[In, Out]) streams(kind Stream) Route[In, Out] {
	r.Stream = kind
	return r.answers(http.StatusOK)
}

// None is no body.
type None struct{}

// Param is a query parameter and its description.
type Param struct{ Name, Text string }

// Stream says how an answer that is not one JSON value is sent.
type Stream string

// The kinds of streams. In and Out of a WebSocket are the first message and those of the server; if Out is [None], its
// messages are frames.
const (
	WebSocket Stream = "websocket"
	Text      Stream = "text"
	Bytes     Stream = "bytes"
)

// At sets the parameters of the path, in order.
func (r Route[In, Out]) At(values ...string) Route[In, Out] { return Route[In, Out]{r.at(values)} }

// With adds a query parameter, unless value is empty.
func (r Route[In, Out]) With(name, value string) Route[In, Out] {
	return Route[In, Out]{r.with(name, value)}
}

// Flag adds a query parameter with the value 1 if on.
func (r Route[In, Out]) Flag(name string, on bool) Route[In, Out] {
	value := ""
	if on {
		value = "1"
	}
	return Route[In, Out]{r.with(name, value)}
}

// Body sets the body of the request.
func (r Route[In, Out]) Body(in In) Route[In, Out] {
	given := *r.Endpoint
	given.body = in
	return Route[In, Out]{&given}
}

// Ask calls the route.
func (r Route[In, Out]) Ask(ctx context.Context, c Caller) (out Out, err error) {
	err = r.Call(ctx, c, bodyOf(&out))
	return out, err
}

func (e *Endpoint) at(values []string) *Endpoint {
	found := *e
	for _, value := range values {
		before, rest, _ := strings.Cut(found.Pattern, "{")
		_, after, ok := strings.Cut(rest, "}")
		if !ok {
			panic("route " + e.Name + ": too many parameters of the path")
		}
		found.Pattern = before + url.PathEscape(value) + after
	}
	return &found
}

func (e *Endpoint) with(name, value string) *Endpoint {
	if !slices.ContainsFunc(e.Query, func(p Param) bool { return p.Name == name }) {
		panic("route " + e.Name + ": no parameter of the query is called " + name)
	}
	found := *e
	if value != "" {
		found.query += "&" + name + "=" + url.QueryEscape(value)
	}
	return &found
}

// Method returns the HTTP method.
func (e *Endpoint) Method() string {
	method, _, _ := strings.Cut(e.Pattern, " ")
	return method
}

// Path returns the path. Parameters that are not set keep their names.
func (e *Endpoint) Path() string {
	_, path, _ := strings.Cut(e.Pattern, " ")
	return Root + path
}

// Target returns the path and the query, for callers that send the request themselves.
func (e *Endpoint) Target() string {
	path := e.Path()
	if strings.Contains(path, "{") {
		panic("route " + e.Name + ": a parameter of the path is missing")
	}
	if e.query != "" {
		path += "?" + e.query[1:]
	}
	return path
}

// Caller sends a request with in as its body, and decodes the answer into out. Both may be nil.
type Caller interface {
	Call(ctx context.Context, method, target string, in, out any) error
}

// Call calls the route and decodes the answer into out unless that is nil.
func (e *Endpoint) Call(ctx context.Context, c Caller, out any) error {
	return c.Call(ctx, e.Method(), e.Target(), e.body, out)
}

// bodyOf returns body, or nil for [None].
func bodyOf(body any) any {
	switch body.(type) {
	case None, *None:
		return nil
	}
	return body
}

// Description describes a [Route] for generators. Request and Response are zero values of the bodies, or nil.
type Description struct {
	*Endpoint
	Request, Response any
}

func (r Route[In, Out]) describe() Description {
	var in In
	var out Out
	return Description{r.Endpoint, bodyOf(in), bodyOf(out)}
}

// agentQuery selects one agent.
var agentQuery = []Param{{"agent", "only this one; empty: all"}}

// described is a [Route] of any types.
type described interface{ describe() Description }

// All returns the descriptions of all routes, in the order of the reference.
func All() []Description {
	routes := slices.Concat([]described{
		Version, Demo, DemoLid, DemoStart, OpenAPI, LoginLink, LoginPass, Doctor, Events, Machines, Agents, AgentAdd,
		Agent, AgentUpdate, AgentRemove, AgentProbe, AgentUpgrade, AgentReconnect, AgentAnswer, PairedClients,
		ClientRevoke, AgentAudit, AgentLimits, AgentLimitSet, AgentLimitUnset, PairCode, AgentRotate, KeyRotate,
		Operations, Operation, OperationAnswer, OperationCancel, Directories, ImageSend, Images, ImagePull,
		ImageRemove, ImageDisk, Commit, Environments, EnvironmentFile, Presets, PresetCreate, PresetUpdate,
		PresetDelete, Devices, DeviceHistory, Resources, Accounts, AccountsCSV, ServiceAccounts, ServiceAccountsCSV,
		Queue, Sessions, Launch, LaunchMany, Preview, Session, SessionUpdate, Keep, MoveOffers, Move, IdleSimulation,
		Loss, Terminate, TerminateUndo, Park, Continue, Relocate, RelocationPlan,
		History, Logs, Usage, LastSuccess, Terminals, TerminalOpen, TerminalClose, TerminalSearch, TerminalOutput,
		TerminalAttach, Exec, Apps, AppOpen,
		AppDoorClose, AppStop, Services, ServiceDefinition, ServiceDeploy, ServiceChange, ServiceRemove, ServiceToken,
		ServiceRevoke, ServiceChat, Service, ServiceRecipe,
		SSHSetup, SSHUpdate, SSHAccess, SSHTest, SSHStream,
	}, SessionFiles().all(), []described{
		FileCopy, FileSync, Folders, FolderCreate, Folder, FolderUpdate, FolderTrash, FolderRestore, FolderDelete,
		FolderDeleteStop, FolderSFTP, Project, ProjectBuild,
		ProjectBuildChoices, ProjectOpen, Projects, ProjectUpdate, ProjectForget, ProjectClone,
	}, FolderFiles().all(), []described{
		Recents, RecentUpdate, RecentDelete, RecentRecipe, SessionRecipe, RecipeRead, RecipeCompare, LinkRead,
		Settings, SettingsUpdate, SettingsFile, SettingUpdate, Secrets, SecretSet,
		SecretDelete, Log, Diagnostics, Updates, UpdatesCheck, Notifier, NotifierTry, WindowShow,
		Shutdown,
	})
	all := make([]Description, len(routes))
	for i, one := range routes {
		all[i] = one.describe()
	}
	return all
}
