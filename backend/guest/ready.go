package guest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway/backend/guest/link"
	"slipway/backend/session"
)

const (
	firstProbe = 20 * time.Millisecond
	slowProbe  = 250 * time.Millisecond
	probeLimit = 5 * time.Second // for one probe
	maxStatus  = 4 << 10         // bytes of a status line
)

type dialFunc func(ctx context.Context, port int) (net.Conn, error)

// awaitReady waits until a port accepts connections and, if there is a path, answers a GET with a status below 500. It
// returns the last failure when ctx ends.
func awaitReady(ctx context.Context, dial dialFunc, port int, path string) error {
	pause := firstProbe
	for {
		err := probe(ctx, dial, port, path)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, slowProbe)
		case <-ctx.Done():
			return err
		}
	}
}

func probe(ctx context.Context, dial dialFunc, port int, path string) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	conn, err := dial(ctx, port)
	if err != nil {
		return err
	}
	defer conn.Close()
	if path == "" {
		return nil
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	status, err := get(conn, port, path)
	if err != nil {
		return err
	}
	if status >= 500 {
		return fmt.Errorf("answered with status %d", status)
	}
	return nil
}

// get makes one HTTP request and returns the status. It does not use net/http, which would double the guest's size.
func get(conn net.Conn, port int, path string) (int, error) {
	request := "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1:" + strconv.Itoa(port) +
		"\r\nUser-Agent: slipway-guest\r\nAccept: */*\r\nConnection: close\r\n\r\n"
	if _, err := io.WriteString(conn, request); err != nil {
		return 0, err
	}
	line, err := bufio.NewReader(io.LimitReader(conn, maxStatus)).ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("read status: %w", err)
	}
	version, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	if err != nil || !strings.HasPrefix(version, "HTTP/") {
		return 0, errors.New("the answer is not HTTP")
	}
	return status, nil
}

func (g *Guest) dial(ctx context.Context, stream net.Conn, port int) error {
	conn, err := g.cfg.Processes.DialPort(ctx, port)
	if err != nil {
		return session.WrapError(err, session.CodeAppTimeout,
			fmt.Sprintf("Nothing in the session listens on port %d.", port),
			"Start the program that serves it and try again.")
	}
	defer conn.Close()
	if err := link.ReplyOK(stream, struct{}{}); err != nil {
		return nil
	}
	carry(stream, conn)
	return nil
}

// carry copies in both directions until either side ends, and closes both.
func carry(stream, conn net.Conn) {
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(conn, stream)
		_ = conn.Close()
	})
	_, _ = io.Copy(stream, conn)
	_ = stream.Close()
	back.Wait()
}
