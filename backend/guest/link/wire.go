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

// MaxMessage is the longest message that either side accepts, in bytes.
const MaxMessage = 4 << 20

// Op names what a stream is opened for.
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
	OpListening      Op = "listening"
	OpActivity       Op = "activity"
	OpNotice         Op = "notice"
	OpFile           Op = "file"
	OpSSH            Op = "ssh"
	OpSSHHost        Op = "ssh.host"
	OpSSHUse         Op = "ssh.use"
)

// Request is the first message of every stream. The field that belongs to Op is set.
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
	Text    string                   `json:"text,omitempty"`    // notice
	File    *FileCall                `json:"file,omitempty"`    // file
	SSH     *session.SSHRequest      `json:"ssh,omitempty"`     // ssh
	// time that the caller will wait, in nanoseconds; 0: no limit
	Deadline time.Duration `json:"deadline,omitempty"`
}

// reply answers a [Request]: exactly one field is set.
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

// Event is one frame of the events stream. Exactly one field is set. A new stream begins with what is true already:
// ready, exit, oom and error.
type Event struct {
	Ready bool `json:"ready,omitempty"` // the container is set up
	// the batch command ended with this code; the container ends next
	Exit  *int           `json:"exit,omitempty"`
	OOM   int            `json:"oom,omitempty"`   // processes that the kernel has killed for memory so far
	Error *session.Cause `json:"error,omitempty"` // session_start_no-shell and other trouble that stands
}

// ServiceRequest asks for a program that serves a port.
type ServiceRequest struct {
	ID   string           `json:"id"`
	Argv []string         `json:"argv"`
	Env  []session.EnvVar `json:"env,omitempty"`
	Port int              `json:"port"`
	Dir  string           `json:"dir,omitempty"` // directory that it shows; it is only told again
	// path whose GET must answer below 500; empty: a connection is enough
	Ready   string        `json:"ready,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"` // nanoseconds; 0: 30 s
}

// ServiceState is the state of a service.
type ServiceState string

// The states of a service.
const (
	ServiceStarting ServiceState = "starting"
	ServiceReady    ServiceState = "ready"
	ServiceExited   ServiceState = "exited" // ended by itself after it was ready
	ServiceFailed   ServiceState = "failed" // never became ready
)

// Service is a program that the guest started to serve a port.
type Service struct {
	ID       string         `json:"id"`
	Port     int            `json:"port"`
	Dir      string         `json:"dir,omitempty"` // as it was asked for
	State    ServiceState   `json:"state"`
	ExitCode *int           `json:"exitCode,omitempty"`
	Error    *session.Cause `json:"error,omitempty"`
}

// Foreground is what runs in one terminal. Program is empty while the shell waits for its next command. Known is false
// where the guest cannot tell.
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
	return WriteMessage(w, reply{Error: CauseOf(failure)})
}

// CauseOf writes failure the way it crosses the link.
func CauseOf(failure error) *session.Cause {
	return session.AsError(failure, session.CodeGuestInternal).Cause()
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
