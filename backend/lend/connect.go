package lend

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// connect answers CONNECT: it connects to the address, and copies both ways.
func (p *proxy) connect(w http.ResponseWriter, r *http.Request) {
	far, err := p.dial(r.Context(), r.Host)
	if err != nil {
		refuse(w, err)
		return
	}
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		far.Close()
		return
	}
	p.tunnels.Go(func() {
		stop := context.AfterFunc(p.life(), func() {
			far.Close()
			near.Close()
		})
		defer stop()
		defer far.Close()
		defer near.Close()
		_ = near.SetDeadline(time.Time{}) // a lost connection fails the write
		if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			return
		}
		var both sync.WaitGroup
		both.Go(func() { pump(far, buffered, near) })
		both.Go(func() { pump(near, far, far) })
		both.Wait()
	})
}

// pump copies one direction and ends it; a failure ends both.
func pump(to net.Conn, from io.Reader, conn net.Conn) {
	if _, err := io.Copy(to, from); err != nil || closeWrite(to) != nil {
		to.Close()
		conn.Close()
	}
}

// dial connects to an address, by the proxy of this computer if it has one.
func (p *proxy) dial(ctx context.Context, address string) (net.Conn, error) {
	via, err := p.via(&http.Request{URL: &url.URL{Scheme: "https", Host: address}})
	switch {
	case err != nil:
		return nil, err
	case via == nil:
		return p.config.Dial(ctx, "tcp", address)
	}
	return dialBy(ctx, via, address)
}

// dialBy connects to an address by another proxy.
func dialBy(ctx context.Context, via *url.URL, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	ports := map[string]string{"http": "80", "https": "443"}
	port, known := ports[via.Scheme]
	if !known {
		return nil, fmt.Errorf("its own proxy is of the kind %s, which is not supported", via.Scheme)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(via.Hostname(), cmp.Or(via.Port(), port)))
	if err != nil {
		return nil, err
	}
	if via.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: via.Hostname()})
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	asked := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address,
		Header: http.Header{}}
	if via.User != nil {
		password, _ := via.User.Password()
		credentials := base64.StdEncoding.EncodeToString([]byte(via.User.Username() + ":" + password))
		asked.Header.Set("Proxy-Authorization", "Basic "+credentials)
	}
	buffered := bufio.NewReader(conn)
	err = asked.Write(conn)
	var said *http.Response
	if err == nil {
		said, err = http.ReadResponse(buffered, asked) //nolint:bodyclose // that is the connection
	}
	if err == nil && said.StatusCode != http.StatusOK {
		err = errors.New("its own proxy answers " + said.Status)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &connected{conn, buffered}, nil
}

// connected is a connection of which more was read than the answer of a proxy.
type connected struct {
	net.Conn
	buffered io.Reader
}

func (c *connected) Read(p []byte) (int, error) { return c.buffered.Read(p) }
func (c *connected) CloseWrite() error          { return closeWrite(c.Conn) }

// closeWrite ends one direction of a connection, or both where that is all that it can.
func closeWrite(conn net.Conn) error {
	if half, can := conn.(interface{ CloseWrite() error }); can {
		return half.CloseWrite()
	}
	return conn.Close()
}
