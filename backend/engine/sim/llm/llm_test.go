package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// tested is a server that has loaded its model.
type tested struct {
	*testing.T
	*Server
	log  bytes.Buffer
	most int // requests at a time
}

// serve runs a test with a server, in simulated time.
func serve(t *testing.T, run func(s *tested)) {
	synctest.Test(t, func(t *testing.T) {
		s := &tested{T: t}
		s.Server = New(Config{Name: "tiny", Log: &s.log, Metrics: LlamaMetrics,
			Busy: func(requests int) { s.most = max(s.most, requests) }})
		time.Sleep(loadTime)
		run(s)
		s.Server.Close()
	})
}

// ask sends a request; without a body it is a GET.
func (s *tested) ask(ctx context.Context, path, body string) *httptest.ResponseRecorder {
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if cut := recover(); cut != nil {
				if err, ok := cut.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
					panic(cut)
				}
			}
		}()
		s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body)))
	}()
	return w
}

// reply has what tests read of answers and events.
type reply struct {
	Object  string
	Model   string
	Choices []struct {
		Text    string
		Message struct{ Role, Content string }
		Delta   struct {
			Role    string
			Content string
		}
		Reason string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	}
	Data  []struct{ Embedding any }
	Error *struct{ Message, Type string }
}

func (s *tested) reply(path, body string, status int) (r reply) {
	s.Helper()
	w := s.ask(s.Context(), path, body)
	if w.Code != status {
		s.Fatalf("%s has status %d: %s", path, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
		s.Fatal(err)
	}
	return r
}

func TestItLoadsForASecond(t *testing.T) {
	serve(t, func(s *tested) {
		s.Server = New(s.config)
		if r := s.reply("/health", "", http.StatusServiceUnavailable); r.Error == nil {
			t.Error("it does not say why")
		}
		s.reply("/v1/chat/completions", `{}`, http.StatusServiceUnavailable)
		time.Sleep(loadTime)
		s.reply("/health", "", http.StatusOK)
		if w := s.ask(s.Context(), "/v1/models", ""); !strings.Contains(w.Body.String(), `"id":"tiny"`) {
			t.Errorf("the models are %s", w.Body)
		}
	})
}

const hello = `"messages":[{"role":"system","content":"Be kind."},
	{"role":"user","content":[{"type":"text","text":"Tell me about harbours, please."}]}]`

func TestAnAnswerSaysThatItIsSimulated(t *testing.T) {
	serve(t, func(s *tested) {
		began := time.Now()
		first := s.reply("/v1/chat/completions", `{`+hello+`}`, http.StatusOK)
		took := time.Since(began)
		text := first.Choices[0].Message.Content
		count := len(strings.Fields(text))
		if !strings.HasPrefix(text, opening+" Words in your prompt: 5.") || first.Choices[0].Reason != "stop" ||
			first.Choices[0].Message.Role != "assistant" || first.Model != "tiny" {
			t.Errorf("got %+v", first)
		}
		if first.Usage.Prompt != 7 || first.Usage.Completion != count || took != time.Duration(count)*wordTime {
			t.Errorf("%d words in %v with %+v", count, took, first.Usage)
		}
		if again := s.reply("/v1/chat/completions", `{`+hello+`}`, http.StatusOK); again.Choices[0].Message.Content !=
			text {
			t.Errorf("the same prompt got %q, then %q", text, again.Choices[0].Message.Content)
		}
		other := s.reply("/v1/completions", `{"prompt":"Something else","model":"mine"}`, http.StatusOK)
		if got := other.Choices[0].Text; !strings.HasPrefix(got, opening) || got == text || other.Model != "mine" {
			t.Errorf("another prompt got %+v", other)
		}
		few := s.reply("/v1/completions", `{"prompt":["a","b"],"max_tokens":4}`, http.StatusOK)
		if c := few.Choices[0]; c.Text != "This is a simulated" || c.Reason != "length" {
			t.Errorf("four words are %+v", c)
		}
		many := s.reply("/v1/completions", `{"prompt":"a","max_tokens":500,"ignore_eos":true}`, http.StatusOK)
		if many.Usage.Completion != 500 {
			t.Errorf("500 words are %d", many.Usage.Completion)
		}
	})
}

// events returns the events of a stream before [DONE].
func (s *tested) events(path, body string) (events []reply) {
	s.Helper()
	w := s.ask(s.Context(), path, body)
	text, ended := strings.CutSuffix(w.Body.String(), "data: [DONE]\n\n")
	if !ended || w.Header().Get("Content-Type") != "text/event-stream" {
		s.Fatalf("it does not end: %s", w.Body)
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		var one reply
		if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &one); err != nil {
			s.Fatalf("%s: %v", line, err)
		}
		events = append(events, one)
	}
	return events
}

func TestAStreamIsTheSameAnswer(t *testing.T) {
	serve(t, func(s *tested) {
		want := s.reply("/v1/chat/completions", `{`+hello+`}`, http.StatusOK)
		events := s.events("/v1/chat/completions", `{"stream":true,"stream_options":{"include_usage":true},`+hello+`}`)
		text := ""
		for i, e := range events[:len(events)-1] {
			text += e.Choices[0].Delta.Content
			if (e.Choices[0].Delta.Role == "assistant") != (i == 0) ||
				(e.Choices[0].Reason == "stop") != (i == len(events)-2) || e.Object != "chat.completion.chunk" {
				t.Errorf("event %d is %+v", i, e)
			}
		}
		last := events[len(events)-1]
		if text != want.Choices[0].Message.Content || len(last.Choices) != 0 || *last.Usage != *want.Usage {
			t.Errorf("got %q, %+v; want %+v", text, last, want)
		}
		events = s.events("/v1/completions", `{"stream":true,"prompt":"a","max_tokens":2}`)
		if len(events) != 3 || events[1].Choices[0].Text != " is" || events[2].Usage != nil ||
			events[2].Choices[0].Reason != "length" {
			t.Errorf("got %+v", events)
		}
	})
}

func TestAClientThatLeavesEndsItsAnswer(t *testing.T) {
	serve(t, func(s *tested) {
		ctx, cancel := context.WithTimeout(s.Context(), time.Second)
		defer cancel()
		began := time.Now()
		s.ask(ctx, "/v1/completions", `{"prompt":"a","ignore_eos":true}`)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
		if w := s.ask(s.Context(), "/metrics", ""); !strings.Contains(w.Body.String(),
			"\nllamacpp:requests_processing 0\n") {
			t.Errorf("it continues: %s", w.Body)
		}
		if got := s.log.String(); got != "request: POST /v1/completions cancelled\n" {
			t.Errorf("the log has %q", got)
		}
	})
}

func TestOthersWaitForASlot(t *testing.T) {
	serve(t, func(s *tested) {
		var asked sync.WaitGroup
		for range slots + 1 {
			asked.Go(func() { s.ask(s.Context(), "/v1/completions", `{"prompt":"one two","max_tokens":8}`) })
		}
		time.Sleep(wordTime / 2)
		metrics := func(want ...string) {
			t.Helper()
			lines := strings.Split(s.ask(s.Context(), "/metrics", "").Body.String(), "\n")
			for _, line := range want {
				if !slices.Contains(lines, "llamacpp:"+line) {
					t.Errorf("%s is missing: %q", line, lines)
				}
			}
		}
		metrics(fmt.Sprint("requests_processing ", slots), "requests_deferred 1")
		asked.Wait()
		metrics("requests_processing 0", "requests_deferred 0", fmt.Sprint("tokens_predicted_total ", 8*(slots+1)),
			fmt.Sprint("prompt_tokens_total ", 2*(slots+1)))
		if s.most != slots {
			t.Errorf("%d were answered at a time", s.most)
		}
	})
}

func TestEmbeddingsOfLikeTextsAreNear(t *testing.T) {
	serve(t, func(s *tested) {
		r := s.reply("/v1/embeddings", `{"input":["a red boat","a blue boat","quite different"]}`, http.StatusOK)
		product := func(a, b int) (sum float64) {
			for i, x := range r.Data[a].Embedding.([]any) {
				sum += x.(float64) * r.Data[b].Embedding.([]any)[i].(float64)
			}
			return sum
		}
		if near, far := product(0, 1), product(0, 2); near < far+0.2 || product(0, 0) < 0.99 {
			t.Errorf("near %v, far %v", near, far)
		}
		packed := s.reply("/v1/embeddings", `{"input":"a red boat","encoding_format":"base64"}`, http.StatusOK)
		if text, ok := packed.Data[0].Embedding.(string); !ok || len(text) != (dimensions*4+2)/3*4 {
			t.Errorf("got %v", packed.Data)
		}
	})
}

func TestWhatIsRefused(t *testing.T) {
	serve(t, func(s *tested) {
		for _, c := range []struct {
			path, body string
			status     int
			message    string
		}{
			{"/v1/chat/completions", `{`, http.StatusBadRequest, "The request is not valid: unexpected EOF"},
			{"/v1/chat/completions", `{"messages":7}`, http.StatusBadRequest, ""},
			{"/v1/chat/completions", `{}`, http.StatusBadRequest, "The request has no messages."},
			{"/v1/completions", `{}`, http.StatusBadRequest, "The request has no prompt."},
			{"/v1/completions", `{"prompt":[7]}`, http.StatusBadRequest, ""},
			{"/v1/completions", `{"prompt":"a","max_tokens":0}`, http.StatusBadRequest,
				"max_tokens must be at least 1."},
			{"/v1/embeddings", `{}`, http.StatusBadRequest, "The request has no input."},
			{"/v1/completions", `{"prompt":"` + strings.Repeat("a", longestRequest) + `"}`,
				http.StatusRequestEntityTooLarge, "The request is larger than 16 MiB."},
			{"/v1/completions", "", http.StatusNotFound, "There is no GET /v1/completions."},
		} {
			r := s.reply(c.path, c.body, c.status)
			if r.Error == nil || r.Error.Type == "" || c.message != "" && r.Error.Message != c.message {
				t.Errorf("%s %.40s: %+v", c.path, c.body, r.Error)
			}
		}
	})
}

func TestAnAnswerIsAsLongAsThePromptWants(t *testing.T) {
	serve(t, func(s *tested) {
		got := s.reply("/v1/completions", `{"prompt":"Write 500 words about ships."}`, http.StatusOK)
		if n := got.Usage.Completion; n < 500 || n > 520 || got.Choices[0].Reason != "stop" {
			t.Errorf("it has %d words and ends with %s", n, got.Choices[0].Reason)
		}
	})
}
