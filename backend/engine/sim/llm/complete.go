package llm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"
)

// request has what the server reads of requests. Other members are ignored.
type request struct {
	Model    string `json:"model"`
	Prompt   texts  `json:"prompt"`
	Messages []struct {
		Role    string `json:"role"`
		Content texts  `json:"content"`
	} `json:"messages"`
	Stream        bool `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           *int `json:"max_tokens"`
	MaxCompletionTokens *int `json:"max_completion_tokens"`
	IgnoreEOS           bool `json:"ignore_eos"` // continue up to max_tokens
}

// texts is a text, a list of texts, or a list of the parts of a message.
type texts []string

func (t *texts) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil { // also null
		*t = texts{text}
		return nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return errors.New("expected a text or a list of texts")
	}
	for _, data := range parts {
		var part struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(data, &part.Text) != nil && json.Unmarshal(data, &part) != nil {
			return errors.New("expected a text or a part of a message")
		}
		*t = append(*t, part.Text)
	}
	return nil
}

// style is one of the two kinds of completions.
type style struct {
	object, chunk, id string
	choice            func(text, reason string, stream bool) object
}

var (
	chat = style{object: "chat.completion", chunk: "chat.completion.chunk", id: "chatcmpl-",
		choice: func(text, reason string, stream bool) object {
			if stream {
				delta := object{}
				if text != "" {
					delta["content"] = text
				}
				return object{"index": 0, "delta": delta, "finish_reason": orNil(reason)}
			}
			return object{"index": 0, "message": object{"role": "assistant", "content": text},
				"finish_reason": reason}
		}}
	plain = style{object: "text_completion", chunk: "text_completion", id: "cmpl-",
		choice: func(text, reason string, _ bool) object {
			return object{"index": 0, "text": text, "logprobs": nil, "finish_reason": orNil(reason)}
		}}
)

func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// asks returns the number of words of a prompt and the text that it asks about.
func (q request) asks(as style) (words int, asked string) {
	if as.id == plain.id {
		asked = strings.Join(q.Prompt, " ")
		return len(strings.Fields(asked)), asked
	}
	for _, m := range q.Messages {
		text := strings.Join(m.Content, " ")
		words += len(strings.Fields(text))
		if m.Role == "user" {
			asked = text
		}
	}
	return words, asked
}

// limit is how many words the client allows; nil: no limit.
func (q request) limit() *int { return cmp.Or(q.MaxCompletionTokens, q.MaxTokens) }

// wrong says what is wrong with a request; empty: nothing.
func (q request) wrong(as style) string {
	switch most := q.limit(); {
	case as.id == plain.id && q.Prompt == nil:
		return "The request has no prompt."
	case as.id == chat.id && len(q.Messages) == 0:
		return "The request has no messages."
	case most != nil && *most < 1:
		return "max_tokens must be at least 1."
	}
	return ""
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request, as style) {
	var q request
	if !read(w, r, &q) {
		return
	}
	if wrong := q.wrong(as); wrong != "" {
		refuse(w, http.StatusBadRequest, invalidRequest, wrong)
		return
	}
	count, asked := q.asks(as)
	number, end, err := s.begin(r, count)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer end()
	if q.Model == "" {
		q.Model = s.config.Name
	}
	most := longest
	if limit := q.limit(); limit != nil {
		most = min(*limit, longest)
	}
	words, reason := compose(asked, most, q.IgnoreEOS)
	a := &answer{server: s, request: r, words: words, reason: reason, style: as,
		usage: object{"prompt_tokens": count, "completion_tokens": len(words), "total_tokens": count + len(words)},
		head: object{"id": as.id + fmt.Sprint(number), "created": s.config.Clock.Now().Unix(), "model": q.Model,
			"system_fingerprint": "simulated"}}
	if q.Stream {
		err = a.stream(w, q.StreamOptions.IncludeUsage)
	} else {
		err = a.whole(w)
	}
	if err != nil {
		panic(http.ErrAbortHandler) // it must not look complete
	}
}

// answer is one that is being given.
type answer struct {
	server  *Server
	request *http.Request
	words   []string // with the spaces before them
	reason  string
	style   style
	usage   object
	head    object // members of every event
}

// each calls give with every word when it is its turn. It fails if the client left or give fails.
func (a *answer) each(give func(word string) error) error {
	clock := a.server.config.Clock
	began := clock.Now()
	for i, word := range a.words {
		turn := began.Add(time.Duration(i+1) * wordTime)
		if err := clock.Pause(a.request.Context(), clock.Until(turn)); err != nil {
			return err
		}
		a.server.count(func() { a.server.predicted++ })
		if err := give(word); err != nil {
			return err
		}
	}
	return nil
}

// body is an answer or event with choices.
func (a *answer) body(kind string, choices ...object) object {
	body := object{"object": kind, "choices": append([]object{}, choices...)}
	maps.Copy(body, a.head)
	return body
}

func (a *answer) whole(w http.ResponseWriter) error {
	if err := a.each(func(string) error { return nil }); err != nil {
		return err
	}
	body := a.body(a.style.object, a.style.choice(strings.Join(a.words, ""), a.reason, false))
	body["usage"] = a.usage
	write(w, http.StatusOK, body)
	return nil
}

func (a *answer) stream(w http.ResponseWriter, usage bool) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	flusher := http.NewResponseController(w)
	send := func(data []byte) error {
		_, err := fmt.Fprintf(w, "data: %s\n\n", data)
		return errors.Join(err, flusher.Flush())
	}
	event := func(body object) error {
		data, err := json.Marshal(body)
		return errors.Join(err, send(data))
	}
	var err error
	if a.style.id == chat.id {
		err = event(a.body(a.style.chunk, object{"index": 0, "finish_reason": nil,
			"delta": object{"role": "assistant", "content": ""}}))
	}
	if err == nil {
		err = a.each(func(word string) error {
			return event(a.body(a.style.chunk, a.style.choice(word, "", true)))
		})
	}
	if err == nil {
		err = event(a.body(a.style.chunk, a.style.choice("", a.reason, true)))
	}
	if err == nil && usage {
		body := a.body(a.style.chunk)
		body["usage"] = a.usage
		err = event(body)
	}
	if err == nil {
		err = send([]byte("[DONE]"))
	}
	return err
}
