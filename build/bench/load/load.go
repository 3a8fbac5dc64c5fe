// Package load asks model servers as clients do, and judges every answer.
package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"slipway/build/bench/measure"
)

// Target is where answers are asked for.
type Target struct {
	Bases  []string // of the API, used in turn
	Model  string
	Token  string // empty: none is needed
	Client *http.Client
	turn   *atomic.Int64
}

// NewTarget returns a target. Its connections are used again only if reuse is true.
func NewTarget(model, token string, reuse bool, bases ...string) Target {
	return Target{Bases: bases, Model: model, Token: token, turn: &atomic.Int64{},
		Client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2000, DisableKeepAlives: !reuse,
			DisableCompression: true}}}
}

// Question is one request for a chat.
type Question struct {
	Words    int // tokens of the answer
	Stream   bool
	Pace     time.Duration // between words, of a server that follows it
	Numbered bool          // the words are numbered, and their order is checked
	Began    func()        // called at the first word; nil: nothing
}

// Answer is what a client got.
type Answer struct {
	First, Whole time.Duration // since the request, until its first word and its end
	Gap          time.Duration // the longest between two words
	Words        int
	Err          error // what is wrong with it
}

// Refusal is the error of an answer that is no success.
type Refusal struct {
	Status     int
	RetryAfter string // of its header, in seconds
	text       string
}

func (r *Refusal) Error() string { return r.text }

// Ask asks once.
func (t Target) Ask(ctx context.Context, q Question) (a Answer) {
	begin := time.Now()
	a.Err = t.ask(ctx, q, &a, begin)
	a.Whole = time.Since(begin)
	return a
}

func (t Target) ask(ctx context.Context, q Question, a *Answer, begin time.Time) error {
	turn := t.turn.Add(1) // another conversation each time, because a router may send one to the same replica
	prompt := fmt.Sprintf("sing of the sea, verse %03d", turn%1000)
	asked := map[string]any{"model": t.Model, "max_tokens": q.Words, "ignore_eos": true, "stream": q.Stream,
		"messages": []map[string]string{{"role": "user", "content": prompt}}}
	if q.Stream {
		asked["stream_options"] = map[string]bool{"include_usage": true}
	}
	if q.Pace > 0 {
		asked["pace_ms"] = q.Pace.Milliseconds()
	}
	body, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	base := t.Bases[int(turn)%len(t.Bases)]
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.GetBody = nil // the client itself repeats nothing
	request.Header.Set("Content-Type", "application/json")
	if t.Token != "" {
		request.Header.Set("Authorization", "Bearer "+t.Token)
	}
	answer, err := t.Client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
		after := answer.Header.Get("Retry-After")
		return &Refusal{answer.StatusCode, after, fmt.Sprintf("%s, Retry-After %q: %s", answer.Status, after, text)}
	}
	if q.Stream {
		return a.read(answer.Body, q, begin)
	}
	a.First = time.Since(begin)
	text, err := io.ReadAll(answer.Body)
	if err == nil && !json.Valid(text) {
		err = fmt.Errorf("not JSON: %s", text)
	}
	return err
}

// read reads a stream to its end.
func (a *Answer) read(body io.Reader, q Question, begin time.Time) error {
	lines, done, last := bufio.NewScanner(body), false, begin
	for lines.Scan() {
		data, is := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !is {
			continue
		}
		if done = string(data) == "[DONE]"; done {
			continue
		}
		word := bytes.Contains(data, []byte(`"content":"`))
		if !word {
			continue
		}
		now := time.Now()
		if a.Words == 0 {
			a.First = now.Sub(begin)
			if q.Began != nil {
				q.Began()
			}
		} else {
			a.Gap = max(a.Gap, now.Sub(last))
		}
		if last = now; q.Numbered && !bytes.Contains(data, fmt.Appendf(nil, `"w%d "`, a.Words)) {
			return fmt.Errorf("%s is not word %d", data, a.Words)
		}
		a.Words++
	}
	switch {
	case lines.Err() != nil:
		return lines.Err()
	case !done || a.Words == 0 || q.Numbered && a.Words != q.Words:
		return errors.New("the stream is cut short")
	}
	return nil
}

// Result is what all clients of a run got.
type Result struct {
	Answers []Answer
	Took    time.Duration
}

// Run has so many clients ask until all requests are answered or stop is closed. pause is how long a client waits after
// request i; nil: not at all.
func Run(clients, requests int, stop <-chan struct{}, ask func(i int) Answer,
	pause func(i int) time.Duration) (r Result) {
	begin := time.Now()
	var next atomic.Int64
	var mu sync.Mutex
	var all sync.WaitGroup
	more := func() (i int, ok bool) {
		select {
		case <-stop:
			return 0, false
		default:
		}
		i = int(next.Add(1)) - 1
		return i, i < requests
	}
	for range clients {
		all.Go(func() {
			for i, ok := more(); ok; i, ok = more() {
				a := ask(i)
				mu.Lock()
				r.Answers = append(r.Answers, a)
				mu.Unlock()
				if pause != nil {
					time.Sleep(pause(i))
				}
			}
		})
	}
	all.Wait()
	r.Took = time.Since(begin)
	return r
}

// Failed returns the failures.
func (r Result) Failed() (failed []error) {
	for _, a := range r.Answers {
		if a.Err != nil {
			failed = append(failed, a.Err)
		}
	}
	return failed
}

// Rate returns how many requests were answered each second.
func (r Result) Rate() float64 {
	return float64(len(r.Answers)-len(r.Failed())) / r.Took.Seconds()
}

// Words returns how many words came.
func (r Result) Words() (sum int) {
	for _, a := range r.Answers {
		sum += a.Words
	}
	return sum
}

// Median returns the median of a time of the answers that are right.
func (r Result) Median(of func(Answer) time.Duration) time.Duration {
	var all []time.Duration
	for _, a := range r.Answers {
		if a.Err == nil {
			all = append(all, of(a))
		}
	}
	return measure.Median(all)
}
