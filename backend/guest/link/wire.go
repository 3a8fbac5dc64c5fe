// Package link is the protocol between the agent and the guest: its messages, which package guest describes, and
// [Client], with which the agent calls the guest of one container.
package link

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"slipway/backend/session"
	"slipway/tunnel/frame"
)

// Version is the version of the link's protocol. Both sides must have the same.
const Version = 1

// MaxMessage is the maximum length of a message, in bytes.
const MaxMessage = 4 << 20

// Op is the purpose of a stream.
type Op string

// The operations.
const (
	OpHello          Op = "hello"
	OpEvents         Op = "events"
	OpTerminalList   Op = "terminal.list"
	OpTerminalOpen   Op = "terminal.open"
	OpTerminalAttach Op = "terminal.attach"
	OpTerminalClose  Op = "terminal.close"
	OpExec           Op = "exec"
	OpWhich          Op = "which"
	OpServiceStart   Op = "service.start"
	OpServiceStop    Op = "service.stop"
	OpServiceList    Op = "service.list"
	OpDial           Op = "dial"
	OpSockets        Op = "sockets"
	OpListening      Op = "listening"
	OpActivity       Op = "activity"
	OpNotice         Op = "notice"
	OpFile           Op = "file"
	OpSSH            Op = "ssh"
	OpSSHHost        Op = "ssh.host"
	OpSSHUse         Op = "ssh.use"
)

// Request is the first message of every stream, with the fields for Op.
type Request struct {
	Op      Op                       `json:"op"`
	Version int                      `json:"version,omitempty"` // hello
	Open    *session.TerminalRequest `json:"open,omitempty"`    // terminal.open
	Attach  *session.AttachRequest   `json:"attach,omitempty"`  // terminal.attach
	Exec    *session.ExecRequest     `json:"exec,omitempty"`    // exec
	Service *ServiceRequest          `json:"service,omitempty"` // service.start
	ID      string                   `json:"id,omitempty"`      // terminal.close, service.stop
	Names   []string                 `json:"names,omitempty"`   // which
	Port    int                      `json:"port,omitempty"`    // dial
	Count   int                      `json:"count,omitempty"`   // sockets
	Text    string                   `json:"text,omitempty"`    // notice
	File    *FileCall                `json:"file,omitempty"`    // file
	SSH     *session.SSHRequest      `json:"ssh,omitempty"`     // ssh

	Deadline time.Duration `json:"deadline,omitempty"` // how long the caller waits, in nanoseconds; 0: no limit
}

// reply answers a [Request] with exactly one field.
type reply struct {
	OK    json.RawMessage `json:"ok,omitempty"`
	Error *session.Cause  `json:"error,omitempty"`
}

// Hello is the guest's answer to hello.
type Hello struct {
	Version int  `json:"version"`
	PID     int  `json:"pid"`
	Shells  bool `json:"shells"` // the image has a shell
}

// Event is one frame of the events stream, with exactly one field. A new stream begins with the current state.
type Event struct {
	Ready bool           `json:"ready,omitempty"` // the container is set up
	Exit  *int           `json:"exit,omitempty"`  // exit code of the batch command; the container ends next
	OOM   int            `json:"oom,omitempty"`   // processes that the kernel has killed for lack of memory
	Error *session.Cause `json:"error,omitempty"` // such as session_start_no-shell
}

// Socket stands for the path of a unix socket in the arguments of a program.
const Socket = "{socket}"

// Program is the path of the guest in a container.
const Program = "/.slipway/guest"

// ServiceLast is how long a service may need for its last answer.
const ServiceLast = 5 * time.Second

// ServiceRequest starts a program that serves a port.
type ServiceRequest struct {
	ID   string           `json:"id"`
	Argv []string         `json:"argv"`
	Env  []session.EnvVar `json:"env,omitempty"`
	Port int              `json:"port"`
	// in place of Argv where other users have the container's network: the program listens on the unix socket whose
	// path replaces [Socket]. Without it, it is not started there
	Private []string `json:"private,omitempty"`
	Dir     string   `json:"dir,omitempty"` // directory that it shows, returned in Service
	// path whose GET must answer with a status below 500; empty: a connection is enough
	Ready string `json:"ready,omitempty"`
	// path whose GET is awaited, up to [ServiceLast], before the program is stopped
	Last    string        `json:"last,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"` // nanoseconds; 0: 30 s
}

// ServiceState is the state of a service.
type ServiceState string

// The states of a service.
const (
	ServiceStarting ServiceState = "starting"
	ServiceReady    ServiceState = "ready"
	ServiceExited   ServiceState = "exited" // ended after it was ready
	ServiceFailed   ServiceState = "failed" // never became ready
)

// Service is a program that the guest started to serve a port.
type Service struct {
	ID       string         `json:"id"`
	Port     int            `json:"port"`
	Dir      string         `json:"dir,omitempty"` // of the request
	State    ServiceState   `json:"state"`
	ExitCode *int           `json:"exitCode,omitempty"`
	Error    *session.Cause `json:"error,omitempty"`
}

// WritePath is where the service that keeps the output of notebooks writes what they lack: the one of its query's path,
// else all. Those with pages are left alone, unless the query has ending.
const WritePath = "/write"

// UnkeptPath is where the service that keeps the output of notebooks answers with a list of [Unkept].
const UnkeptPath = "/unkept"

// LivePath is where the service that keeps the output of notebooks answers pages.
const LivePath = session.LivePath

// Unkept is a notebook whose output is not kept while no page is open.
type Unkept struct {
	Notebook string `json:"notebook"` // its path as the notebook server has it
	Why      Why    `json:"why"`
}

// Why says why a kernel cannot be listened to.
type Why string

// The reasons.
const (
	WhyEncrypted   Why = "encrypted"   // it encrypts its messages
	WhyUnreadable  Why = "unreadable"  // its connection file cannot be used
	WhyUnreachable Why = "unreachable" // it does not answer
)

// Foreground is the program in the foreground of a terminal; empty: the shell waits. Known is false if it is unknown.
type Foreground struct {
	Terminal string `json:"terminal"`
	Program  string `json:"program,omitempty"`
	Known    bool   `json:"known"`
}

// WriteMessage writes one message: a big-endian uint32 length and that much JSON.
func WriteMessage(w io.Writer, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	if len(body) > MaxMessage {
		return fmt.Errorf("message of %d bytes is longer than %d", len(body), MaxMessage)
	}
	message := append(make([]byte, frame.LengthSize, frame.LengthSize+len(body)), body...)
	frame.PutLength(message)
	_, err = w.Write(message)
	return err
}

// ReadMessage reads one message into value.
func ReadMessage(r io.Reader, value any) error {
	length, err := frame.ReadLength(r)
	if err != nil {
		return err
	}
	if length > MaxMessage {
		return fmt.Errorf("message of %d bytes is longer than %d", length, MaxMessage)
	}
	body, err := frame.ReadPayload(r, nil, length)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, value); err != nil {
		return fmt.Errorf("decode message: %w", err)
	}
	return nil
}

// ReplyOK answers a request with value.
func ReplyOK(w io.Writer, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode reply: %w", err)
	}
	return WriteMessage(w, reply{OK: body})
}

// ReplyError answers a request with a failure.
func ReplyError(w io.Writer, failure error) error {
	return WriteMessage(w, reply{Error: session.CauseOf(failure, session.CodeGuestInternal)})
}

// readReply reads the answer to a request into value, which may be nil.
func readReply(r io.Reader, value any) error {
	var said reply
	if err := ReadMessage(r, &said); err != nil {
		return err
	}
	if cause := checkCause(said.Error); cause != nil {
		return session.NewError(cause.Code, cause.Message, cause.Hint)
	}
	if value == nil {
		return nil
	}
	if err := json.Unmarshal(said.OK, value); err != nil {
		return err
	}
	return check(value)
}
