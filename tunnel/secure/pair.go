package secure

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"time"

	"slipway/tunnel"
	"slipway/tunnel/cpace"
)

// Pairing goes over a TLS connection in which both sides have shown their keys, and proves that the same connection
// ends at both: the exchange has the code as its password, both fingerprints as its channel, and a secret that only the
// two ends of this connection can compute as its session. A machine in between has two connections, and so two
// sessions, and learns from the exchange only that its one guess was wrong.

// PairConfig says with which agent this computer pairs, and as what.
type PairConfig struct {
	Dial DialConfig // without Key
	Code string     // as typed
	Name string     // what the agent calls this computer
}

// Paired is what the client knows after pairing.
type Paired struct {
	Key   string // the agent's fingerprint, to be expected from now on
	Name  string // what the agent calls itself
	Owner string
	Role  Role
}

// pairTimeout bounds a pairing on the dialer's side.
const pairTimeout = 30 * time.Second

// Pair proves to an agent that a person has seen its code, and has the agent prove the same. Its errors are of type
// [tunnel.Fault].
func Pair(ctx context.Context, config PairConfig) (Paired, error) {
	c, err := parseCode(config.Code)
	if err != nil {
		return Paired{}, err
	}
	if !validName(config.Name) || config.Name == "" {
		return Paired{}, tunnel.NewFault(tunnel.CodePairCode,
			"The name of this computer must have 1 to 64 printable characters.", "", nil)
	}
	ctx, cancel := context.WithTimeout(ctx, pairTimeout)
	defer cancel()
	dial := config.Dial.withDefaults()
	var peer proven
	conn, raw, _, err := dial.connectEither(ctx, dial.Address.Web, protoPair, func(p proven) error {
		peer = p // any key: the exchange proves it
		return nil
	})
	if err != nil {
		return Paired{}, pairConnectFault(ctx, dial.Address, err)
	}
	defer raw.Close()
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	var paired Paired
	session, err := sessionOf(conn)
	if err == nil {
		paired, err = pairOver(conn, session, dial.Identity.Fingerprint(), peer.fingerprint, c, config.Name)
	}
	if err != nil {
		return Paired{}, pairFault(ctx, dial.Address, err)
	}
	return paired, nil
}

// pairOver is the dialer's side of the exchange.
func pairOver(conn io.ReadWriter, session []byte, own, theirs string, c code, name string) (Paired, error) {
	info, err := json.Marshal(pairInfo{Name: name})
	if err != nil {
		return Paired{}, err
	}
	exchange, err := cpace.Start(cpace.Initiator, cpace.Input{
		Password: []byte(c.secret), Channel: channelOf(own, theirs), Session: session, Associated: info,
	})
	if err != nil {
		return Paired{}, err
	}
	hello := pairHello{Version: pairVersion, Plate: c.plate, Share: exchange.Share(), Info: info}
	if err := writeMessage(conn, hello); err != nil {
		return Paired{}, err
	}
	var reply pairReply
	if err := readMessage(conn, &reply); err != nil {
		return Paired{}, err
	}
	switch {
	case reply.Status != statusOK:
		return Paired{}, statusError(reply.Status)
	case reply.Version != pairVersion:
		return Paired{}, statusError(statusVersion)
	}
	done, err := exchange.Finish(reply.Share, reply.Info)
	if err != nil {
		return Paired{}, err
	}
	if err := writeMessage(conn, pairConfirm{Tag: done.Tag()}); err != nil {
		return Paired{}, err
	}
	var result pairResult
	if err := readMessage(conn, &result); err != nil {
		return Paired{}, err
	}
	if result.Status != statusOK {
		return Paired{}, statusError(result.Status)
	}
	if !done.Verify(result.Tag) {
		return Paired{}, statusError(statusWrong) // it does not know the code either
	}
	their, err := readInfo(reply.Info)
	if err != nil {
		return Paired{}, err
	}
	paired := Paired{Key: theirs, Name: their.Name, Owner: result.Owner, Role: result.Role}
	if (Client{Key: own, Name: name, Owner: paired.Owner, Role: paired.Role}).check() != nil {
		return Paired{}, errMessage
	}
	return paired, nil
}

// serve is the listener's side. The connection has a deadline.
func (p *Pairings) serve(conn *tls.Conn, peer proven, identity *Identity, config ListenConfig) {
	var hello pairHello
	if err := readMessage(conn, &hello); err != nil {
		return
	}
	their, err := readInfo(hello.Info)
	if err != nil || their.Name == "" {
		return
	}
	if hello.Version != pairVersion {
		_ = writeMessage(conn, pairReply{Status: statusVersion})
		return
	}
	p.mu.Lock()
	o, status := p.find(hello.Plate)
	p.mu.Unlock()
	if status != statusOK {
		config.Observe(Event{Kind: EventNoCode, Key: peer.fingerprint, Name: their.Name,
			Address: conn.RemoteAddr().String()})
		_ = writeMessage(conn, pairReply{Status: status})
		return
	}
	client := Client{Key: peer.fingerprint, Name: their.Name, Paired: p.now().UTC().Truncate(time.Second)}
	_ = p.exchange(conn, hello, o, client, identity, config) // the client knows, if it is still there
}

// exchange judges the client's guess.
func (p *Pairings) exchange(conn *tls.Conn, hello pairHello, o *offer, client Client, identity *Identity,
	config ListenConfig) error {
	session, err := sessionOf(conn)
	if err != nil {
		return err
	}
	info, err := json.Marshal(pairInfo{Name: config.Name})
	if err != nil {
		return err
	}
	exchange, err := cpace.Start(cpace.Responder, cpace.Input{
		Password: []byte(o.secret), Channel: channelOf(client.Key, identity.Fingerprint()), Session: session,
		Associated: info,
	})
	if err != nil {
		return err
	}
	done, err := exchange.Finish(hello.Share, hello.Info)
	if err != nil {
		return err
	}
	reply := pairReply{Status: statusOK, Version: pairVersion, Share: exchange.Share(), Info: info}
	if err := writeMessage(conn, reply); err != nil {
		return err
	}
	var confirm pairConfirm
	if err := readMessage(conn, &confirm); err != nil {
		return err // without a tag nothing was guessed
	}
	status := p.settle(hello.Plate, o, done.Verify(confirm.Tag), client, config.Clients.Add)
	result := pairResult{Status: status}
	event := Event{Kind: EventWrongCode, Key: client.Key, Name: client.Name, Address: conn.RemoteAddr().String()}
	if status == statusOK {
		event.Kind = EventPaired
		result.Tag, result.Owner, result.Role = done.Tag(), o.grant.Owner, o.grant.Role
	}
	if status == statusOK || status == statusWrong {
		config.Observe(event)
	}
	return writeMessage(conn, result)
}

// sessionOf is a secret that only the two ends of a TLS connection can compute (RFC 8446, section 7.5).
func sessionOf(conn *tls.Conn) ([]byte, error) {
	state := conn.ConnectionState()
	return state.ExportKeyingMaterial("EXPORTER-slipway-pair-1", nil, 32)
}

func channelOf(dialer, listener string) []byte {
	return []byte("slipway pair 2\x00" + dialer + "\x00" + listener)
}

func pairConnectFault(ctx context.Context, address Address, err error) error {
	fault := connectFault(ctx, address.String(), err)
	if f, ok := errors.AsType[*tunnel.Fault](fault); ok && f.Code == tunnel.CodeConnectVersion {
		return tunnel.NewFault(tunnel.CodePairExpired, "No pairing code is active on that machine.",
			"Run slipway agent pair there and enter the code here within ten minutes.", err)
	}
	return fault
}

func pairFault(ctx context.Context, address Address, err error) error {
	if refused, ok := errors.AsType[statusError](err); ok {
		return refused.fault()
	}
	switch {
	case errors.Is(err, cpace.ErrReflected):
		return tunnel.NewFault(tunnel.CodePairRefused, "The other side returned this computer's own messages.",
			"Another machine may be answering. Check the address and the network, then try again.", err)
	case errors.Is(err, errMessage), errors.Is(err, cpace.ErrShare):
		return tunnel.NewFault(tunnel.CodeConnectVersion, "What answers there does not speak the pairing protocol.",
			"Upgrade the older side.", err)
	}
	return connectFault(ctx, address.String(), err)
}

const (
	// maxMessage is the longest message of a pairing, in bytes of JSON, without the big-endian uint16 length before it.
	maxMessage = 4 << 10
	// pairVersion is the version of the exchange, which must be that of both sides. Version 1, which was not sent, let
	// a listener pass by returning the dialer's tag.
	pairVersion = 2
)

var errMessage = errors.New("secure: an unreadable pairing message")

// The messages of a pairing, in their order: hello and confirm go to the listener, reply and result come from it.
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

// statusFaults are the code, message and hint of each status.
var statusFaults = map[statusError][3]string{
	statusVersion: {tunnel.CodeConnectVersion,
		"The versions of Slipway on the agent and on this computer cannot pair.", "Upgrade the older side."},
	statusNoCode: {tunnel.CodePairExpired, "This code was used, has expired or never existed.",
		"Run slipway agent pair on the agent's machine to get a new one."},
	statusWait: {tunnel.CodePairExpired, "A wrong code was entered a moment ago.", "Wait a few seconds and try again."},
	statusLocked: {tunnel.CodePairRefused, "Too many wrong codes. Pairing is blocked for an hour.",
		"Someone may be guessing. Find out who before you try again."},
	statusWrong: {tunnel.CodePairCode, "The code is wrong.",
		"Compare it digit by digit. If it is right, another machine may be intercepting the connection."},
	statusFailed: {tunnel.CodePairRefused, "The agent could not save its list of clients.",
		"Check the disk of the agent's machine, then try the same code again."},
}

func (e statusError) fault() *tunnel.Fault {
	f, ok := statusFaults[e]
	if !ok {
		f = [3]string{tunnel.CodePairRefused, "The agent refused to pair.", "Upgrade the older side."}
	}
	return tunnel.NewFault(f[0], f[1], f[2], e)
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

// readMessage reads one message. It fails with errMessage if that is invalid.
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

// parseMessage ignores fields that a later version may add.
func parseMessage(data []byte, into any) error {
	if json.Unmarshal(data, into) != nil {
		return errMessage
	}
	return nil
}

// readInfo reads the other side's description of itself.
func readInfo(data []byte) (pairInfo, error) {
	var info pairInfo
	if err := parseMessage(data, &info); err != nil || !validName(info.Name) {
		return pairInfo{}, errMessage
	}
	return info, nil
}
