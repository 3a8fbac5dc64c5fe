package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"slipway/backend/guest/link"
)

const (
	maxRequest   = 16 << 10 // bytes of a request
	serveLimit   = 15 * time.Second
	readLimit    = 5 * time.Second
	maxCallers   = 16 // at a time
	answerDone   = "HTTP/1.0 204 No Content\r\n\r\n"
	answerJSON   = "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"
	answerFailed = "HTTP/1.0 500 Internal Server Error\r\n\r\n"
)

// Serve answers GET [link.WritePath]?path=NOTEBOOK, which returns when the notebook has what it lacked, and ?ending=1,
// which is asked before the server ends. GET [link.UnkeptPath] returns the notebooks whose output is not kept, and GET
// [link.LivePath] the runs that a page which was away lacks. Everything else is only answered.
func (k *Keeper) Serve(ctx context.Context, listener net.Listener) {
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	var callers sync.WaitGroup
	defer callers.Wait()
	turns := make(chan struct{}, maxCallers)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		turns <- struct{}{}
		callers.Go(func() {
			defer func() { <-turns }()
			defer conn.Close()
			k.answer(ctx, conn)
		})
	}
}

func (k *Keeper) answer(ctx context.Context, conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(readLimit))
	from := bufio.NewReader(io.LimitReader(conn, maxRequest))
	line, err := from.ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) < 2 {
		return
	}
	for head := line; head != "\r\n"; {
		if head, err = from.ReadString('\n'); err != nil {
			return
		}
	}
	_ = conn.SetDeadline(time.Now().Add(serveLimit))
	ctx, cancel := context.WithTimeout(ctx, serveLimit)
	defer cancel()
	answer, err := k.do(ctx, words[1])
	if err != nil {
		answer = answerFailed
	}
	_, _ = io.WriteString(conn, answer)
}

func (k *Keeper) do(ctx context.Context, target string) (answer string, err error) {
	asked, err := url.ParseRequestURI(target)
	if err != nil {
		return "", err
	}
	query := asked.Query()
	switch asked.Path {
	case link.WritePath:
		return answerDone, k.Write(ctx, query.Get("path"), query.Has("ending"))
	case link.UnkeptPath:
		list, err := k.unkept(ctx)
		return inJSON(list), err
	case link.LivePath:
		return inJSON(k.live(query)), nil
	}
	return answerDone, nil
}

func inJSON(value any) string {
	body, _ := json.Marshal(value) // what was read from JSON, and texts, can always be marshalled
	return answerJSON + string(body)
}
