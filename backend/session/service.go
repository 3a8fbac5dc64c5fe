package session

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Services keeps models served: each service has replicas, which are sessions of the type inference, behind one
// endpoint. A service is known by its name, which is unique on its machine.
type Services interface {
	// ListServices returns the services of the caller, sorted by name; those of everybody for an admin.
	//
	//rpc:method name=services effect=read who=custom
	ListServices(ctx context.Context) ([]Service, error)
	// DeployService creates a service, or replaces what an existing one of the same owner runs and wants. A spec that
	// differs from the newest revision becomes a new one, to which the replicas change one after the other. It fails
	// with session_create_invalid and Fields, or session_create_already-exists if somebody else has the name.
	//
	//rpc:method name=service.deploy effect=again who=custom
	DeployService(ctx context.Context, req DeployRequest) (Service, error)
	// ChangeService changes what is wanted of a service, without a new revision; session_read_not-found.
	//
	//rpc:method name=service.change effect=again args=service,+ who=custom
	ChangeService(ctx context.Context, name string, change ServiceChange) (Service, error)
	// RemoveService stops a service and forgets it. Its replicas end once they have answered what they are asked.
	//
	//rpc:method name=service.remove effect=again args=service who=custom
	RemoveService(ctx context.Context, name string) error
	// AddServiceToken makes a token with which clients use a service. Only this answer has its text.
	//
	//rpc:method name=service.token effect=once args=service,+ who=custom
	AddServiceToken(ctx context.Context, name string, req TokenRequest) (NewToken, error)
	// RevokeServiceToken makes a token invalid at once. One that does not exist is no error.
	//
	//rpc:method name=service.revoke effect=again args=service,token who=custom
	RevokeServiceToken(ctx context.Context, name, token string) error
	// DialService connects to the router of the machine, which speaks HTTP/1.1 and asks for tokens.
	//
	//rpc:method name=service.dial effect=once who=custom
	DialService(ctx context.Context) (net.Conn, error)
}

// NoService is the error for a service that does not exist or is not shown to the caller: the two cannot be told apart.
func NoService(name string) *Error {
	return NewError(CodeServiceNotFound, fmt.Sprintf("There is no service %s.", Clip(name)),
		"List the services to find it.")
}

// Service is a model that a machine serves, as it is now.
type Service struct {
	Name  string `json:"name"`
	Owner string `json:"owner"`
	Agent string `json:"agent"`
	ServiceWish
	ServiceCondition
	Revision  int              `json:"revision"`  // of its replicas; the target while it is updating
	Revisions []Revision       `json:"revisions"` // newest first
	Live      []Replica        `json:"live"`      // that have not ended, oldest first
	Tokens    []ServiceToken   `json:"tokens"`
	Traffic   ServiceTraffic   `json:"traffic"`
	Scaling   ServiceScaling   `json:"scaling"`
	Addresses []ServiceAddress `json:"addresses"`        // of the machine; that for programs on it first
	Events    []ServiceEvent   `json:"events,omitempty"` // newest first
	CreatedAt time.Time        `json:"createdAt"`
}

// ServiceCondition says whether a service answers.
type ServiceCondition struct {
	State ServiceState `json:"state"`
	Why   string       `json:"why,omitempty"`  // what it waits for or why it does not answer, in sentences
	Said  []Phrase     `json:"said,omitempty"` // Why for other languages
}

// Current is the spec of the revision that the replicas of a service have or change to, as of [SpecOf].
func (s Service) Current() Spec { return SpecOf(s.Revisions, s.Revision) }

// SpecOf returns the spec of one of the revisions, which are newest first; that of the newest if it is not kept any
// more.
func SpecOf(revisions []Revision, number int) Spec {
	for _, r := range revisions {
		if r.Number == number {
			return r.Spec
		}
	}
	if len(revisions) == 0 {
		return Spec{}
	}
	return revisions[0].Spec
}

// ModelNames are the names under which clients ask for the model of a service.
func (s Service) ModelNames() []string {
	if serving := s.Current().Serving; serving != nil && len(serving.Models) > 0 {
		return serving.Models
	}
	return []string{s.Name}
}

// ServiceWish is what a person wants of a service besides its revision.
type ServiceWish struct {
	Replicas int `json:"replicas"` // sessions that serve it; 0: it is stopped
	// without a request for this long it sleeps: no replica runs until the next request; 0: never
	Sleep Duration `json:"sleep,omitempty"`
	// it sleeps as soon as it has no request and another service lacks its devices
	MaySleep bool          `json:"maySleep,omitempty"`
	Rules    []ScalingRule `json:"rules,omitempty"`  // change the number of replicas; the first that matches decides
	Public   bool          `json:"public,omitempty"` // whoever reaches the router may use it without a token
	// a request that is no stream is repeated elsewhere if its replica ends without an answer
	Retry bool `json:"retry,omitempty"`
}

// ServiceState says whether a service answers.
type ServiceState string

// The states of a service.
const (
	ServiceDeploying   ServiceState = "DEPLOYING"   // it has not answered yet
	ServiceReady       ServiceState = "READY"       // all replicas are healthy
	ServiceDegraded    ServiceState = "DEGRADED"    // some are: it answers
	ServiceUnreachable ServiceState = "UNREACHABLE" // none is
	ServiceAsleep      ServiceState = "ASLEEP"      // the next request wakes it
	ServiceUpdating    ServiceState = "UPDATING"    // it answers, and changes to another revision
	ServiceStopping    ServiceState = "STOPPING"
	ServiceStopped     ServiceState = "STOPPED"
	ServiceFailed      ServiceState = "FAILED" // it gave up; Why has the last lines of the log
)

// Revision is what a service ran or runs. It never changes.
type Revision struct {
	Number    int       `json:"number"` // from 1
	Spec      Spec      `json:"spec"`   // of each replica; its Serving says how it serves
	CreatedAt time.Time `json:"createdAt"`
}

// Replica is one session that serves a service.
type Replica struct {
	Session     ID           `json:"session"`
	Revision    int          `json:"revision"`
	State       ReplicaState `json:"state"`
	Why         string       `json:"why,omitempty"`  // what it waits for or why it is out of use
	Said        []Phrase     `json:"said,omitempty"` // Why for other languages
	Since       time.Time    `json:"since"`
	Outstanding int          `json:"outstanding"` // requests that it is answering
}

// ReplicaState says whether a replica gets requests.
type ReplicaState string

// The states of a replica.
const (
	ReplicaWaiting   ReplicaState = "waiting"   // its session does not run yet
	ReplicaWarming   ReplicaState = "warming"   // it has not been healthy yet
	ReplicaHealthy   ReplicaState = "healthy"   // it gets requests
	ReplicaUnhealthy ReplicaState = "unhealthy" // out of use until it answers again or is replaced
	ReplicaDraining  ReplicaState = "draining"  // it answers what it has and ends
	ReplicaEnded     ReplicaState = "ended"
)

// ServiceTraffic counts requests since the agent started.
type ServiceTraffic struct {
	Waiting     int   `json:"waiting"` // held until a replica is healthy
	Outstanding int   `json:"outstanding"`
	Requests    int64 `json:"requests"` // that have ended
	Failed      int64 `json:"failed"`   // of them
	Prompt      int64 `json:"promptTokens"`
	Completion  int64 `json:"completionTokens"`
	// until the first word, rounded up, median of the last hundred streams; 0: unknown
	FirstWordMs     int64     `json:"firstWordMs"`
	FirstWordP99Ms  int64     `json:"firstWordP99Ms"`  // which one in a hundred exceeds
	TokensPerSecond float64   `json:"tokensPerSecond"` // generated, mean of the last minute; they count as answers end
	Last            time.Time `json:"last,omitzero"`   // when the last request began; zero: never
}

// DeployRequest asks for a service.
type DeployRequest struct {
	Name  string `json:"name"`
	Owner string `json:"owner,omitempty"` // empty: the caller
	Spec  Spec   `json:"spec"`            // of each replica, with its Serving; the agent names the sessions
	ServiceWish
	// ByAdmin opens every image and the agent's registry logins to the replicas. The gate sets it for admins.
	ByAdmin bool `json:"byAdmin,omitempty"`
}

// ServiceChange changes a service. Fields that are nil or zero stay as they are.
type ServiceChange struct {
	Replicas *int      `json:"replicas,omitempty"`
	Sleep    *Duration `json:"sleep,omitempty"`
	Public   *bool     `json:"public,omitempty"`
	Retry    *bool     `json:"retry,omitempty"`
	MaySleep *bool     `json:"maySleep,omitempty"`
	// all rules: those that are not among them are removed
	Rules    *[]ScalingRule `json:"rules,omitempty"`
	Revision int            `json:"revision,omitempty"` // an earlier one to return to
	TryAgain bool           `json:"tryAgain,omitempty"` // forget failures, after it gave up
}

// ServiceToken is a token without its text.
type ServiceToken struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	CreatedAt  time.Time `json:"createdAt"`
	ExpiresAt  time.Time `json:"expiresAt,omitzero"`   // zero: never
	PerMinute  int       `json:"perMinute,omitempty"`  // most requests; 0: no limit
	Concurrent int       `json:"concurrent,omitempty"` // most requests at a time; 0: no limit
}

// TokenRequest asks for a token.
type TokenRequest struct {
	Name       string   `json:"name"`
	Lifetime   Duration `json:"lifetime,omitempty"` // 0: it never expires
	PerMinute  int      `json:"perMinute,omitempty"`
	Concurrent int      `json:"concurrent,omitempty"`
}

// NewToken is a token with its text, which is stored nowhere.
type NewToken struct {
	ServiceToken
	Text string `json:"text"`
}

// Bounds of a [ServiceWish].
const (
	MaxReplicas = 64
	MaxRules    = 20
)

// Validate returns everything that is wrong with a wish.
func (w ServiceWish) Validate() []FieldError {
	var f findings
	f.refuse(w.Replicas < 0 || w.Replicas > MaxReplicas, "replicas", KindRange,
		fmt.Sprintf("%d is not between 0 and %d replicas.", w.Replicas, MaxReplicas), "Write 0 to stop the service.")
	f.refuse(w.Sleep != 0 && !plausible(w.Sleep, MinLifetime), "sleep", KindRange,
		"A service sleeps after at least 1m without a request.", "Leave it empty to never sleep.")
	f.refuse(len(w.Rules) > MaxRules, "rules", KindTooMany,
		fmt.Sprintf("There are %d rules; the maximum is %d.", len(w.Rules), MaxRules), "Remove some of them.")
	for i, rule := range w.Rules {
		rule.validate(&f, fmt.Sprintf("rules[%d]", i))
	}
	return f
}
