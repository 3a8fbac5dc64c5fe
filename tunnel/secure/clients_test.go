package secure

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestARevokedClientIsOutAtOnce(t *testing.T) {
	a, laptop, other := startAgent(t, nil), newIdentity(t), newIdentity(t)
	a.pairWith(t, laptop)
	a.pairWith(t, other)
	var ends []net.Conn
	for _, web := range []bool{false, true} {
		conn, carrier := a.connect(t, a.dialer(t, laptop, func(c *DialConfig) { c.Address = a.address(web) }))
		exchange(t, conn, carrier)
		ends = append(ends, conn, carrier)
	}
	stays, staysToo := a.connect(t, a.dialer(t, other, nil))
	if err := a.clients.Revoke(laptop.Fingerprint()); err != nil {
		t.Fatal(err)
	}
	for i, conn := range ends {
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Log(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("connection %d ends with %v", i, err)
		}
	}
	exchange(t, stays, staysToo)
	conn, err := a.dialer(t, laptop, nil).Dial(soon(t), false)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	wantCode(t, err, "agent_connect_not-paired")
	again, err := OpenClients(a.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := again.Find(laptop.Fingerprint()); ok {
		t.Error("it is still in the file")
	}
	if err := a.clients.Revoke(laptop.Fingerprint()); !errors.Is(err, ErrUnknownClient) {
		t.Errorf("revoking it twice gave %v", err)
	}
}

func TestARevokedClientWithAStalledPeerIsOutToo(t *testing.T) {
	a, laptop := startAgent(t, nil), newIdentity(t)
	a.pairWith(t, laptop)
	conn, carrier := a.connect(t, a.dialer(t, laptop, nil))
	writing := make(chan error, 1)
	go func() { // nobody reads at the other end
		buffer := make([]byte, 1<<20)
		for {
			if _, err := carrier.Write(buffer); err != nil {
				writing <- err
				return
			}
		}
	}()
	_ = conn
	time.Sleep(100 * time.Millisecond) // lets the buffers of the kernel fill; right either way
	if err := a.clients.Revoke(laptop.Fingerprint()); err != nil {
		t.Fatal(err)
	}
	<-writing
}

func TestTheListOutlivesTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clients.json")
	c := newClock()
	d, err := OpenClients(path, c.now)
	if err != nil {
		t.Fatal(err)
	}
	b := Client{Key: newIdentity(t).Fingerprint(), Name: "b", Owner: "ann", Role: RoleUser}
	first := Client{Key: newIdentity(t).Fingerprint(), Name: "a", Role: RoleAdmin}
	if err := errors.Join(d.Add(b), d.Add(first)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	again, err := OpenClients(path, c.now)
	if err != nil {
		t.Fatal(err)
	}
	list := again.List()
	if len(list) != 2 || list[0].Name != "a" || list[1].Name != "b" || list[1].Owner != "ann" ||
		!list[0].Paired.Equal(c.now()) {
		t.Errorf("the list is %+v", list)
	}
}

func TestPairingAgainSettlesAnewWhatAClientMayDo(t *testing.T) {
	a, laptop := startAgent(t, nil), newIdentity(t)
	a.pairWith(t, laptop)
	_, carrier := a.connect(t, a.dialer(t, laptop, nil))
	if err := a.clients.Add(Client{Key: laptop.Fingerprint(), Name: "laptop", Role: RoleAdmin}); err != nil {
		t.Fatal(err)
	}
	if _, err := carrier.Read(make([]byte, 1)); err == nil {
		t.Error("the connection of before lives on")
	}
	if list := a.clients.List(); len(list) != 1 || list[0].Role != RoleAdmin || list[0].Owner != "" {
		t.Errorf("the list is %+v", list)
	}
}

func TestAListThatCannotBeWrittenDoesNotChange(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := OpenClients(filepath.Join(dir, "clients.json"), nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := Client{Key: newIdentity(t).Fingerprint(), Name: "a"}
	if err := d.Add(kept); err != nil {
		t.Fatal(err)
	}
	live := &closeRecorder{}
	if _, _, err := d.admit(kept.Key, nil, live, 1); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := d.Add(Client{Key: newIdentity(t).Fingerprint(), Name: "b"}); err == nil {
		t.Error("adding succeeded")
	}
	if err := d.Revoke(kept.Key); err == nil {
		t.Error("revoking succeeded")
	}
	if list := d.List(); len(list) != 1 {
		t.Errorf("the list is %+v", list)
	}
	if !live.closed {
		t.Error("the connection of a client that was to be revoked lives on")
	}
}

type closeRecorder struct{ closed bool }

func (c *closeRecorder) Close() error {
	c.closed = true
	return nil
}

func TestClientsThatCannotBeListedAreRefused(t *testing.T) {
	d, err := OpenClients(filepath.Join(t.TempDir(), "clients.json"), nil)
	if err != nil {
		t.Fatal(err)
	}
	key := newIdentity(t).Fingerprint()
	for name, client := range map[string]Client{
		"no key":         {Name: "a"},
		"another key":    {Key: strings.ToUpper(key), Name: "a"},
		"no name":        {Key: key},
		"a long name":    {Key: key, Name: strings.Repeat("a", 65)},
		"a control name": {Key: key, Name: "a\x1b[2J"},
		"a line":         {Key: key, Name: "a", Owner: "b\nc"},
		"a made-up role": {Key: key, Name: "a", Role: "god"},
	} {
		if err := d.Add(client); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestAClientHasABoundedNumberOfConnections(t *testing.T) {
	a, laptop := startAgent(t, func(c *ListenConfig) { c.PerClient = 2 }), newIdentity(t)
	a.pairWith(t, laptop)
	d := a.dialer(t, laptop, nil)
	first, carrier := a.connect(t, d)
	a.connect(t, d)
	third, err := d.Dial(soon(t), false)
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	_, err = third.Read(make([]byte, 1))
	wantCode(t, err, "agent_connect_unavailable")
	_ = first.Close()
	_ = carrier.Close()
	a.connect(t, d)
}

func TestLastSeenIsKeptToTheMinute(t *testing.T) {
	a, laptop := startAgent(t, nil), newIdentity(t)
	a.pairWith(t, laptop)
	_, carrier := a.connect(t, a.dialer(t, laptop, nil))
	a.clock.add(time.Hour)
	_ = carrier.Close()
	if client, _ := a.clients.Find(laptop.Fingerprint()); !client.Seen.Equal(a.clock.now()) {
		t.Errorf("it was last seen at %v", client.Seen)
	}
}

func FuzzClientsFile(f *testing.F) {
	i, err := NewIdentity()
	if err != nil {
		f.Fatal(err)
	}
	good, err := json.Marshal(clientsFile{Version: clientsVersion,
		Clients: []Client{{Key: i.Fingerprint(), Name: "a", Role: RoleUser}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"version":1,"devices":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parseClients(data)
		if err != nil {
			return
		}
		for _, client := range list {
			if err := client.check(); err != nil {
				t.Errorf("%+v was accepted", client)
			}
		}
		written, err := json.Marshal(clientsFile{Version: clientsVersion, Clients: list})
		if err != nil {
			return // a time beyond the year 9999 cannot be written
		}
		if again, err := parseClients(written); err != nil || len(again) != len(list) {
			t.Errorf("what is written back is %d clients, %v", len(again), err)
		}
	})
}

func FuzzPairingMessages(f *testing.F) {
	f.Add([]byte{0, 2, '{', '}'})
	f.Add(append([]byte{0, 30}, `{"plate":"42","share":"AAAA"}`...))
	f.Fuzz(func(t *testing.T, data []byte) {
		var hello pairHello
		r := strings.NewReader(string(data))
		if err := readMessage(r, &hello); err != nil {
			return
		}
		if read := len(data) - r.Len(); read > maxMessage+2 {
			t.Errorf("%d bytes were read", read)
		}
		if info, err := readInfo(hello.Info); err == nil && !validName(info.Name) {
			t.Errorf("the name %q was accepted", info.Name)
		}
		if err := writeMessage(io.Discard, hello); err != nil && !errors.Is(err, errMessage) {
			t.Error(err)
		}
	})
}

func FuzzCodes(f *testing.F) {
	f.Add("42-4821-7390")
	f.Add("４２ 4821 7390")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCode(text)
		if err != nil {
			return
		}
		if again, err := parseCode(c.String()); err != nil || again != c {
			t.Errorf("%q is %v, and %v, %v", text, c, again, err)
		}
	})
}
