package listeners

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/session"
	"slipway/backend/store"
)

// open opens the listeners of a machine whose files are in dir, and its ports.
func open(t *testing.T, dir string, network session.NetworkListener) *Listeners {
	t.Helper()
	l, err := Open(configOf(t, dir, network))
	if err != nil {
		t.Fatal(err)
	}
	l.Open()
	return l
}

func configOf(t *testing.T, dir string, network session.NetworkListener) Config {
	t.Helper()
	books, err := store.Open(store.Config{Path: filepath.Join(dir, "agent.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = books.Close() })
	return Config{Dir: dir, Store: books, Network: network, Log: slog.New(slog.DiscardHandler)}
}

func closeAll(l *Listeners) {
	for _, one := range l.Take() {
		_ = one.Close()
	}
}

// network is where a machine listens for other computers, on a port that is free.
var network = session.NetworkListener{Address: "127.0.0.1:0"}

func TestTheMachineHasItsPortAgainUnlessAnotherHasIt(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	first := func() (url string, l *Listeners) {
		l = open(t, dir, session.NetworkListener{})
		return l.Addresses()[0].URL, l
	}
	before, l := first()
	if !strings.HasPrefix(before, "http://127.0.0.1:") || !strings.HasSuffix(before, "/v1") {
		t.Fatalf("its address is %q", before)
	}
	closeAll(l)
	_ = l.config.Store.Close()
	after, l := first()
	if after != before {
		t.Errorf("the address was %s and is %s", before, after)
	}
	_ = l.config.Store.Close()
	copied, err := os.ReadFile(filepath.Join(dir, "agent.db"))
	if err == nil {
		err = os.WriteFile(filepath.Join(other, "agent.db"), copied, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	taken := open(t, other, session.NetworkListener{})
	if at := taken.Addresses()[0]; at.URL == before || at.URL == "" || at.Fault != "" {
		t.Errorf("where another has the port, the address is %+v", at)
	}
	closeAll(l)
	closeAll(taken)
}

func TestAPortInUseIsSaidAndOpenedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l := open(t, t.TempDir(), session.NetworkListener{Address: other.Addr().String()})
		at := func() session.ServiceAddress { return l.Addresses()[1] }
		if at().URL != "" || !strings.Contains(at().Fault, "address already in use") {
			t.Errorf("with a port in use: %+v", at())
		}
		_ = other.Close()
		if l.Open(); at().URL != "" {
			t.Error("it is tried again at once")
		}
		time.Sleep(retryPause)
		if l.Open(); at().URL == "" || at().Fault != "" {
			t.Errorf("with a free port: %+v", at())
		}
		if l.Open(); len(l.Take()) != 2 || len(l.Take()) != 0 {
			t.Error("a listener is not taken once")
		}
	})
}

func TestTheMachineHasACertificateOfItsOwnOrThatOfTheSettings(t *testing.T) {
	dir := t.TempDir()
	made := func(dir string, network session.NetworkListener) (session.ServiceAddress, *Listeners) {
		l := open(t, dir, network)
		closeAll(l)
		_ = l.config.Store.Close()
		return l.Addresses()[1], l
	}
	first, _ := made(dir, network)
	again, l := made(dir, network)
	if first.Certificate == "" || again.Certificate != first.Certificate {
		t.Error("the second start made another certificate")
	}
	file := filepath.Join(dir, ownFile)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with the key: %v, %v", info, err)
	}
	if strings.Contains(first.Certificate, "PRIVATE") {
		t.Error("the key is given to clients")
	}
	block, _ := pem.Decode([]byte(first.Certificate))
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil || leaf.IsCA || leaf.VerifyHostname("127.0.0.1") != nil || leaf.VerifyHostname("localhost") != nil {
		t.Errorf("the certificate is %+v, %v", leaf, err)
	}
	for name, want := range map[string]bool{"127.0.0.1": true, "localhost": true, "evil.example": false, "": false} {
		if l.Named(name) != want {
			t.Errorf("the machine is %q: %v", name, !want)
		}
	}
	given, _ := made(t.TempDir(), session.NetworkListener{Address: network.Address, Certificate: file})
	if given.Certificate != "" || given.URL == "" {
		t.Errorf("with a certificate of the settings: %+v", given)
	}
	for _, bad := range []session.NetworkListener{
		{Address: network.Address, Certificate: filepath.Join(dir, "none.pem")},
		{Address: network.Address, Certificate: file, Key: filepath.Join(dir, "agent.db")},
	} {
		if _, err := Open(configOf(t, t.TempDir(), bad)); session.CodeOf(err) != session.CodeServerInvalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestOldVersionsOfTLSAreRefused(t *testing.T) {
	l := open(t, t.TempDir(), network)
	opened := l.Take()
	defer func() {
		for _, one := range opened {
			_ = one.Close()
		}
	}()
	go func() {
		for {
			conn, err := opened[1].Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).HandshakeContext(t.Context()) //nolint:forcetypeassert // of tls.NewListener
			_ = conn.Close()
		}
	}()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(l.Addresses()[1].Certificate))
	for version, want := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true,
		tls.VersionTLS13: true} {
		//nolint:gosec // an old version is what is tried
		conn, err := tls.Dial("tcp", opened[1].Addr().String(), &tls.Config{RootCAs: pool, MinVersion: version,
			MaxVersion: version})
		if (err == nil) != want {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
}
