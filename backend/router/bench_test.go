package router

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"slipway/backend/session"
)

// overLoopback is a router before a server of one replica, both on TCP, and the address of the router.
func overLoopback(b *testing.B, server http.HandlerFunc) string {
	replica, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	model := &http.Server{Handler: server}
	go model.Serve(replica)
	router := New(Config{Dial: func(ctx context.Context, _ session.ID, _ int) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", replica.Addr().String())
	}})
	router.Set([]Service{public("a")})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go router.Serve(ctx, listener)
	b.Cleanup(func() {
		cancel()
		model.Close()
	})
	return "http://" + listener.Addr().String() + "/v1/chat/completions"
}

func send(b *testing.B, address, body string) io.ReadCloser {
	answer, err := http.Post(address, "application/json", strings.NewReader(body))
	if err != nil || answer.StatusCode != http.StatusOK {
		b.Fatal(answer, err)
	}
	return answer.Body
}

const oneAnswer = `{"choices":[{"message":{"content":"one"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`

func answerPlain(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, oneAnswer)
}

func BenchmarkPlainRequest(b *testing.B) {
	address := overLoopback(b, answerPlain)
	for b.Loop() {
		body := send(b, address, plain)
		if _, err := io.Copy(io.Discard, body); err != nil {
			b.Fatal(err)
		}
		body.Close()
	}
}

// BenchmarkPlainRequestWithoutRouter is what the client and the server take of BenchmarkPlainRequest.
func BenchmarkPlainRequestWithoutRouter(b *testing.B) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(answerPlain)}
	go server.Serve(listener)
	defer server.Close()
	for b.Loop() {
		body := send(b, "http://"+listener.Addr().String(), plain)
		if _, err := io.Copy(io.Discard, body); err != nil {
			b.Fatal(err)
		}
		body.Close()
	}
}

// BenchmarkStreamedWord sends each word when the client has the one before.
func BenchmarkStreamedWord(b *testing.B) {
	next := make(chan struct{})
	address := overLoopback(b, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		flush := http.NewResponseController(w)
		for {
			fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word\"}}]}\n\n")
			if flush.Flush() != nil {
				return
			}
			if _, more := <-next; !more {
				return
			}
		}
	})
	body := send(b, address, streamed)
	defer body.Close()
	defer close(next)
	lines := bufio.NewReader(body)
	read := func() {
		for range 2 {
			if _, err := lines.ReadSlice('\n'); err != nil {
				b.Fatal(err)
			}
		}
	}
	read()
	for b.Loop() {
		next <- struct{}{}
		read()
	}
}

// BenchmarkMemoryOfStreams reports what 1,000 streams under way take in the router. The ends of the connections have no
// buffers and no goroutines of their own.
func BenchmarkMemoryOfStreams(b *testing.B) {
	const streams = 1000
	replicas := make(chan net.Conn)
	router := New(Config{Dial: func(context.Context, session.ID, int) (net.Conn, error) {
		near, far := net.Pipe()
		replicas <- far
		return near, nil
	}})
	router.Set([]Service{public("a")})
	listener := newPipes()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go router.Serve(ctx, listener)
	buffer := make([]byte, 4096)
	request := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s",
		len(streamed), streamed)
	for b.Loop() {
		var ends []net.Conn
		before := memory()
		for range streams {
			client, err := listener.dial(ctx)
			if err != nil {
				b.Fatal(err)
			}
			fmt.Fprint(client, request)
			replica := <-replicas
			for text := ""; !strings.Contains(text, `"hi"}]}`); {
				n, err := replica.Read(buffer)
				if err != nil {
					b.Fatal(err)
				}
				text += string(buffer[:n])
			}
			go fmt.Fprint(replica, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"+
				"data: {\"choices\":[]}\n\n")
			for text := ""; !strings.Contains(text, "[]"); {
				n, err := client.Read(buffer)
				if err != nil {
					b.Fatal(err)
				}
				text += string(buffer[:n])
			}
			ends = append(ends, client, replica)
		}
		b.ReportMetric(float64(memory()-before)/streams, "B/stream")
		for _, end := range ends {
			end.Close()
		}
		until(b, "nothing is under way", func() bool { return !router.Traffic("chat").IdleSince.IsZero() })
	}
}

// memory is what the heap and the stacks take, in bytes.
func memory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
