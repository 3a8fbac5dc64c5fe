package secure

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"

	"slipway/tunnel"
)

// maxMessage is the longest message of a pairing, in bytes of JSON. Each goes
// behind its length in two bytes, the higher first.
const maxMessage = 4 << 10

var errMessage = errors.New("secure: an unreadable pairing message")

// pairVersion is the version of the exchange; both sides must have the same.
// Version 1, which sent none, let a listener pass by returning the dialer's tag.
const pairVersion = 2

// The messages of a pairing, in their order: hello and confirm go to the
// listener, reply and result come from it.
type (
	pairHello struct {
		Version int    `json:"version"`
		Plate   string `json:"plate"`
		Share   []byte `json:"share"`
		Info    []byte `json:"info"` // a pairInfo in JSON, byte for byte as it is bound into the key
	}
	pairReply struct {
		Status  string `json:"status"`
		Version int    `json:"version,omitempty"`
		Share   []byte `json:"share,omitempty"`
		Info    []byte `json:"info,omitempty"`
	}
	pairConfirm struct {
		Tag []byte `json:"tag"`
	}
	pairResult struct {
		Status string `json:"status"`
		Tag    []byte `json:"tag,omitempty"`
		Owner  string `json:"owner,omitempty"`
		Role   Role   `json:"role,omitempty"`
	}
	pairInfo struct {
		Name string `json:"name"`
	}
)

// What a listener answers.
const (
	statusOK      = "ok"
	statusNoCode  = "no-code"
	statusWait    = "wait"
	statusLocked  = "locked"
	statusWrong   = "wrong"
	statusFailed  = "failed"
	statusVersion = "version"
)

// statusError is an answer other than statusOK.
type statusError string

func (e statusError) Error() string { return "secure: pairing was refused: " + string(e) }

func (e statusError) fault() *tunnel.Fault {
	switch string(e) {
	case statusVersion:
		return tunnel.NewFault(tunnel.CodeConnectVersion,
			"The versions of Slipway on the agent and on this computer cannot pair.", "Upgrade the older side.", e)
	case statusNoCode:
		return tunnel.NewFault(tunnel.CodePairExpired, "This code was used, has expired or never existed.",
			"Run slipway agent pair on the agent's machine to get a new one.", e)
	case statusWait:
		return tunnel.NewFault(tunnel.CodePairExpired, "A wrong code was entered a moment ago.",
			"Wait a few seconds and try again.", e)
	case statusLocked:
		return tunnel.NewFault(tunnel.CodePairRefused, "Too many wrong codes. Pairing is blocked for an hour.",
			"Someone may be guessing. Find out who before you try again.", e)
	case statusWrong:
		return tunnel.NewFault(tunnel.CodePairCode, "The code is wrong.", "Compare it digit by digit. "+
			"If it is right, another machine may be intercepting the connection.", e)
	case statusFailed:
		return tunnel.NewFault(tunnel.CodePairRefused, "The agent could not save its list of clients.",
			"Check the disk of the agent's machine, then try the same code again.", e)
	}
	return tunnel.NewFault(tunnel.CodePairRefused, "The agent refused to pair.", "Upgrade the older side.", e)
}

func writeMessage(w io.Writer, message any) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(data) > maxMessage {
		return errMessage
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(data))), data...))
	return err
}

// readMessage reads one message. What is not exactly one is errMessage.
func readMessage(r io.Reader, into any) error {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint16(head[:])
	if size > maxMessage {
		return errMessage
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return err
	}
	return parseMessage(data, into)
}

// parseMessage is tolerant to fields that a later version may add.
func parseMessage(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(into); err != nil {
		return errMessage
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errMessage
	}
	return nil
}

// readInfo reads what the other side says about itself.
func readInfo(data []byte) (pairInfo, error) {
	var info pairInfo
	if err := parseMessage(data, &info); err != nil || !validName(info.Name) {
		return pairInfo{}, errMessage
	}
	return info, nil
}
