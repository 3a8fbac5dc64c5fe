package router

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestARequestGoesToTheServiceOfItsModel(t *testing.T) {
	w := newWorld(t)
	w.start(manner{}, "a", "b")
	second := public("b")
	second.Name, second.Models = "other", nil
	w.router.Set([]Service{public("a"), second})
	for model, replica := range map[string]string{"m": "a", "other": "b"} {
		got := w.post(fmt.Sprintf(`{"messages":[],"model":%q}`, model), "Authorization", "Bearer x", "X-Api-Key", "y",
			"Cookie", "login=1")
		if err := plainError(got, 8); err != nil || got.header.Get("X-Replica") != replica {
			t.Errorf("%s: %v, by %q", model, err, got.header.Get("X-Replica"))
		}
		if got.header.Get("Set-Cookie")+got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("the client got the headers %v", got.header)
		}
	}
	one := w.fakes["a"].requests()[0]
	if one.path != "/v1/chat/completions" {
		t.Errorf("the path at the replica is %s", one.path)
	}
	for _, name := range []string{"Authorization", "X-Api-Key", "Cookie"} {
		if value := one.header.Get(name); value != "" {
			t.Errorf("the replica got %s: %s", name, value)
		}
	}
	got := w.do(t.Context(), "PUT", "/services/chat/echo/a%2Fb?q=1", strings.NewReader("four"))
	if got.body != "PUT /echo/a%2Fb?q=1 4" {
		t.Errorf("the path at the replica is %q, %v", got.body, got.err)
	}
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/v1/chat/completions", `{"model":"none"}`, "404 model_not_found"},
		{"POST", "/v1/chat/completions", `{"model":7}`, "400"},
		{"POST", "/v1/chat/completions", `{"messages":[]}`, "400"},
		{"POST", "/v1/chat/completions", `model=m`, "400"},
		{"POST", "/v1/chat/completions", ``, "400"},
		{"GET", "/v1/responses/1", ``, "405 unsupported"},
		{"GET", "/services/none/x", ``, "404 not_found"},
		{"GET", "/elsewhere", ``, "404 not_found"},
	} {
		if got := w.do(t.Context(), c.method, c.path, strings.NewReader(c.body)); got.code() != c.want {
			t.Errorf("%s %s %s is %s, want %s", c.method, c.path, c.body, got.code(), c.want)
		}
	}
}

func TestOnlyModelsThatCanAnswerAreListed(t *testing.T) {
	w := newWorld(t)
	up, asleep, down, foreign := public("a"), public(), public("b"), public("c")
	asleep.Name, asleep.Models, asleep.Asleep = "sleeper", []string{"s1", "org/s2"}, true
	down.Name, down.Models, down.Replicas[0].Ready = "down", []string{"d"}, false
	foreign.Name, foreign.Models, foreign.Public = "foreign", []string{"f"}, false
	foreign.Tokens = []Token{token("t", "secret")}
	w.router.Set([]Service{up, asleep, down, foreign})
	list := func(headers ...string) (names []string) {
		got := w.do(t.Context(), "GET", "/v1/models", nil, headers...)
		for _, part := range strings.Split(got.body, `"id":"`)[1:] {
			name, _, _ := strings.Cut(part, `"`)
			names = append(names, name)
		}
		return names
	}
	if got := fmt.Sprint(list()); got != "[m s1 org/s2]" {
		t.Errorf("without a token: %s", got)
	}
	if got := fmt.Sprint(list("X-Api-Key", "secret")); got != "[m s1 org/s2 f]" {
		t.Errorf("with a token: %s", got)
	}
	one := w.do(t.Context(), "GET", "/v1/models/org/s2", nil)
	if one.body != `{"id":"org/s2","object":"model","created":0,"owned_by":"ada"}`+"\n" {
		t.Errorf("one model is %q", one.body)
	}
	if got := w.do(t.Context(), "GET", "/v1/models/d", nil).code(); got != "404 model_not_found" {
		t.Errorf("a model that cannot answer: %s", got)
	}
	w.router.Set([]Service{foreign})
	if got := w.do(t.Context(), "GET", "/v1/models", nil).code(); got != "401 invalid_api_key" {
		t.Errorf("without a token where all need one: %s", got)
	}
}

func TestTheReplicaWithTheFewestRequestsIsChosen(t *testing.T) {
	s := &service{Service: Service{}}
	s.replace(public("a", "b", "c"), &sticky{})
	table := &sticky{}
	order := ""
	for range 6 {
		order += string(s.pick(table, conversation{}, "").id)
	}
	if order != "abcabc" {
		t.Errorf("equal replicas are chosen in the order %s", order)
	}
	s.replicas[1].outstanding = 0
	for range 3 {
		if one := s.pick(table, conversation{}, ""); one.id != "b" {
			t.Errorf("%s is chosen, want b, which has fewest", one.id)
		}
		s.replicas[0].outstanding, s.replicas[2].outstanding = 9, 9
	}
	if one := s.pick(table, conversation{}, "b"); one.id == "b" {
		t.Error("a replica that is to be avoided is chosen")
	}
	s.replicas[0].up, s.replicas[2].out = false, true
	if one := s.pick(table, conversation{}, "b"); one.id != "b" {
		t.Error("the last ready replica is not chosen")
	}
	s.replicas[1].up = false
	if one := s.pick(table, conversation{}, ""); one != nil {
		t.Errorf("%s is chosen, which is not ready", one.id)
	}
}

func TestAConversationStaysAtItsReplica(t *testing.T) {
	s := &service{Service: Service{}}
	table := &sticky{}
	s.replace(public("a", "b", "c"), table)
	first := read([]byte(`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"1"}]}`))
	body := []byte(`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"1"},{"role":"x"}]}`)
	key := read(body).conversation(body, "t")
	short := body[:len(body)-len(`,{"role":"x"}]}`)]
	short = append(append([]byte{}, short...), "]}"...)
	if first.conversation([]byte(`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"1"}]}`),
		"t") != key || read(short).conversation(short, "t") != key {
		t.Error("a longer conversation has another key")
	}
	if read(body).conversation(body, "other") == key || key == (conversation{}) {
		t.Error("another token has the same key")
	}
	home := s.pick(table, key, "")
	s.pick(table, conversation{}, "")
	if again := s.pick(table, key, ""); again != home {
		t.Errorf("the conversation goes from %s to %s", home.id, again.id)
	}
	if again := s.pick(table, key, ""); again == home {
		t.Errorf("the conversation stays at %s, which has 2 requests more than another", home.id)
	}
	for i := range mostSticky + 10 {
		table.put(conversation{1, byte(i), byte(i >> 8)}, "a")
	}
	if table.get(key) != "" || table.order.Len() != mostSticky || len(table.at) != mostSticky {
		t.Errorf("%d conversations are remembered", table.order.Len())
	}
}

func TestTrafficCountsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(manner{first: time.Second}, "a")
		w.router.Set([]Service{public("a")})
		began := time.Now()
		for range 3 {
			w.post(plain)
		}
		synctest.Wait()
		traffic := w.router.Traffic("chat")
		load := traffic.Replicas["a"]
		if traffic.LastSecond != 0 || traffic.Last30 != 3 || !traffic.Last.Equal(began.Add(2*time.Second)) ||
			!traffic.IdleSince.Equal(began.Add(3*time.Second)) || !load.LastByte.Equal(began.Add(3*time.Second)) ||
			load.Outstanding != 0 || traffic.Waiting != 0 {
			t.Errorf("after three requests: %+v", traffic)
		}
		time.Sleep(28 * time.Second)
		go w.post(plain)
		synctest.Wait()
		traffic = w.router.Traffic("chat")
		if traffic.LastSecond != 1 || traffic.Last30 != 2 || !traffic.IdleSince.IsZero() ||
			traffic.Replicas["a"].Outstanding != 1 {
			t.Errorf("during a fourth request: %+v", traffic)
		}
		time.Sleep(time.Minute)
		if traffic = w.router.Traffic("chat"); traffic.Last30 != 0 {
			t.Errorf("a minute later: %+v", traffic)
		}
		one := w.accounts(4)[0]
		want := Record{At: began, Service: "chat", Owner: "ada", Revision: 3, Replica: "a", Outcome: OutcomeOK,
			Status: 200, Prompt: 5, Completion: 8, FirstWord: time.Second, Whole: time.Second,
			BytesIn: int64(len(plain)), BytesOut: one.BytesOut}
		if one != want || one.BytesOut == 0 {
			t.Errorf("the record is %+v", one)
		}
		if got := w.router.Traffic("none"); got.Replicas != nil {
			t.Errorf("an unknown service has traffic: %+v", got)
		}
	})
}

func TestTokensAreCounted(t *testing.T) {
	for _, c := range []struct {
		name, path, body string
		asked            bool
	}{
		{"in a plain answer", "/v1/chat/completions", plain, false},
		{"in a stream that does not ask", "/v1/chat/completions", streamed, false},
		{"in a stream of completions", "/v1/completions", streamed, false},
		{"in a stream with other options", "/v1/completions",
			`{"model":"m","stream":true,"stream_options":{"other":1}}`, false},
		{"in a stream that asks not to", "/v1/completions",
			`{"model":"m","stream":true,"stream_options":{"include_usage":false}}`, false},
		{"in a stream without options", "/v1/completions",
			`{"model":"m","stream":true,"stream_options":null}`, false},
		{"in a stream of a service by name", "/services/chat/v1/completions", streamed, false},
		{"in a stream that asks", "/v1/completions",
			`{"model":"m","stream":true,"stream_options":{"include_usage":true}}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.start(manner{}, "a")
			w.router.Set([]Service{public("a")})
			got := w.do(t.Context(), "POST", c.path, strings.NewReader(c.body), "Content-Type", "application/json")
			if c.asked {
				before, after, ok := strings.Cut(got.body, "data: {\"choices\":[],\"usage\"")
				_, after, _ = strings.Cut(after, "\n\n")
				if got.body = before + after; !ok {
					t.Error("the client does not get the usage that it asks for")
				}
			}
			if c.body == plain {
				if err := plainError(got, 8); err != nil {
					t.Error(err)
				}
			} else {
				checkStream(t, got, 8)
			}
			one := w.accounts(1)[0]
			if one.Prompt != 5 || one.Completion != 8 || one.BytesIn != int64(len(c.body)) {
				t.Errorf("the record is %+v", one)
			}
			sent := w.fakes["a"].requests()[0].body
			if asks := strings.Contains(sent, `"include_usage":true`); asks != (c.body != plain) {
				t.Errorf("the replica got %s", sent)
			}
		})
	}
	t.Run("not if the engine cannot", func(t *testing.T) {
		w := newWorld(t)
		w.start(manner{}, "a")
		s := public("a")
		s.IncludeUsage = false
		w.router.Set([]Service{s})
		checkStream(t, w.post(streamed), 8)
		if sent := w.fakes["a"].requests()[0].body; sent != streamed {
			t.Errorf("the replica got %s", sent)
		}
	})
}
