package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strconv"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/session"
	"slipway/build/bench/load"
	"slipway/build/bench/measure"
	"slipway/gpu"
)

const (
	modelImage = "slipway-test/llama:1"     // llama.cpp's server with a tiny model
	fakeImage  = "slipway-test/fakemodel:1" // numbered words, at the pace that is asked for
	modelPort  = 8000
	rounds     = 5
)

// served is a service of the control plane that is measured, and the same replicas behind nginx and without anything.
type served struct {
	*bench
	name                string
	replicas            int
	ours, nginx, direct load.Target
}

// measureInference measures services of real containers, beside nginx in front of the same ones. Each replica has a
// CPU, so there are as many as the machine allows, at most 3.
func (b *bench) measureInference() {
	replicas := min(3, runtime.NumCPU())
	b.conditions = append(b.conditions, fmt.Sprintf("inference: %d replicas, medians of %d rounds that change between "+
		"Slipway, nginx (least_conn, closed connections, no buffering) and one replica at a time", replicas, rounds))
	real := b.serve("tiny", modelImage, session.ServiceWish{Replicas: replicas, Retry: true}, modelServer()...)
	real.compare()
	real.mixed()
	real.replace()
	real.kill()
	real.remove()
	fake := b.serve("fake", fakeImage, session.ServiceWish{Replicas: replicas}, "/fakemodel", "-port",
		strconv.Itoa(modelPort))
	fake.many()
	fake.paced()
	fake.plain()
	fake.remove()
	b.measureWaking()
}

// modelServer is the command of a real server.
func modelServer(more ...string) []string {
	return append([]string{"/app/llama-server", "--model", "/models/tiny.gguf", "--host", "0.0.0.0", "--port",
		strconv.Itoa(modelPort), "--threads", "1", "--metrics"}, more...)
}

// serve deploys a service, waits for its replicas and puts nginx in front of them.
func (b *bench) serve(name, image string, wish session.ServiceWish, command ...string) *served {
	s := &served{bench: b, name: name, replicas: wish.Replicas}
	s.deploy(image, wish, command...)
	s.ready()
	token := measure.Get(route.ServiceToken.At(name).Body(session.TokenRequest{Name: "bench"}).Ask(b.ctx, b))
	s.ours = load.NewTarget(name, token.Text, true, s.now().Address)
	return s
}

// front starts nginx before the replicas as they are now.
func (s *served) front() *nginx {
	var addresses, bases []string
	for _, r := range s.now().Live {
		addresses = append(addresses, s.address(r))
		bases = append(bases, "http://"+s.address(r)+"/v1")
	}
	proxy := startNginx(s.ctx, addresses)
	s.nginx = load.NewTarget(s.name, "", true, proxy.base)
	s.direct = load.NewTarget(s.name, "", false, bases...)
	return proxy
}

// address is that of the server of a replica, as this machine reaches it.
func (s *served) address(r session.Replica) string {
	const itsAddress = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
	return fmt.Sprintf("%s:%d", s.dockerSays("inspect", "-f", itsAddress, container(s.session(r))), modelPort)
}

func (s *served) session(r session.Replica) api.Session {
	return measure.Get(route.Session.At(string(r.Session)).Ask(s.ctx, s))
}

func (s *served) deploy(image string, wish session.ServiceWish, command ...string) {
	spec := session.Spec{Image: image, Type: session.Inference,
		Resources: session.Resources{CPU: 1, Memory: gpu.GiB},
		Access:    session.Access{Serving: &session.Serving{Port: modelPort, Command: command}}}
	s.services[s.name] = true
	measure.Get(route.ServiceDeploy.Body(session.DeployRequest{Name: s.name, Spec: spec, ServiceWish: wish}).
		Ask(s.ctx, s))
}

// now returns the service as it is.
func (s *served) now() api.Service {
	for _, one := range measure.Get(route.Services.Ask(s.ctx, s)) {
		if one.Name == s.name {
			return one
		}
	}
	measure.Fail("there is no service %s", s.name)
	return api.Service{}
}

// until waits until the service is as it should be.
func (s *served) until(what string, done func(api.Service) bool) api.Service {
	for end := time.Now().Add(2 * time.Minute); ; s.pause(20 * time.Millisecond) {
		now := s.now()
		if done(now) {
			return now
		}
		if time.Now().After(end) {
			measure.Fail("the service %s is not %s: %+v", s.name, what, now)
		}
	}
}

func (s *served) ready() api.Service {
	return s.until("ready", func(now api.Service) bool {
		return now.State == session.ServiceReady && len(now.Live) == s.replicas
	})
}

func (s *served) remove() { measure.OK(s.removeService(s.ctx, s.name)) }

// report adds a row with a limit.
func (s *served) report(what, value, compared, limit string, kept bool) {
	s.add(row{what: what, value: value, compared: compared, limit: limit, kept: kept})
}

// compare asks the real server for streams, by each way in turn.
func (s *served) compare() {
	defer s.front().stop()
	const clients, requests, words = 4, 200, 8
	ways := []load.Target{s.ours, s.nginx, s.direct}
	whole := make([]samples, len(ways))
	rates := make([][]float64, len(ways))
	failed := make([]int, len(ways))
	for i := range (rounds + 1) * len(ways) {
		way := i % len(ways)
		got := load.Run(clients, requests, nil, func(int) load.Answer {
			return ways[way].Ask(s.ctx, load.Question{Words: words, Stream: true})
		}, nil)
		if failed[way] += len(got.Failed()); i < len(ways) {
			continue // the first round warms up
		}
		whole[way] = append(whole[way], got.Median(func(a load.Answer) time.Duration { return a.Whole }))
		rates[way] = append(rates[way], got.Rate())
	}
	times := ratio(whole[0].median(), whole[1].median())
	s.add(row{fmt.Sprintf("llama-server, streams of %d tokens, %d clients: whole", words, clients),
		"p50 " + ms(whole[0].median()), fmt.Sprintf("nginx: p50 %s; direct: p50 %s", ms(whole[1].median()),
			ms(whole[2].median())), fmt.Sprintf("%.2f", times), "≤ 1.15", times <= 1.15})
	share := measure.Median(rates[0]) / measure.Median(rates[1])
	s.add(row{"the same, requests a second", fmt.Sprintf("%.0f", measure.Median(rates[0])),
		fmt.Sprintf("nginx: %.0f; direct: %.0f", measure.Median(rates[1]), measure.Median(rates[2])),
		fmt.Sprintf("%.2f", share), "≥ 0.9", share >= 0.9})
	s.report("the same, failed", strconv.Itoa(failed[0]), fmt.Sprintf("nginx: %d; direct: %d", failed[1], failed[2]),
		"0", failed[0] == 0)
}

// mixed asks the real server for streams and plain answers with pauses in which it closes connections. The tokens that
// the service counts are those that the servers count.
func (s *served) mixed() {
	const clients, requests = 150, 1800
	before, made := s.now().Traffic.Completion, s.madeTokens()
	got := load.Run(clients, requests, nil, func(i int) load.Answer {
		return s.ours.Ask(s.ctx, load.Question{Words: 8, Stream: i%2 == 0})
	}, func(int) time.Duration { return rand.N(6 * time.Second) })
	s.report(fmt.Sprintf("%d streams and plain requests, pauses of 0–6 s", requests), s.failures(got), "", "0 failed",
		len(got.Failed()) == 0)
	counted, made := s.now().Traffic.Completion-before, s.madeTokens()-made
	s.report("tokens of them, as the service counts", strconv.FormatInt(counted, 10),
		fmt.Sprintf("llama-server: %d", made), "equal", counted == made)
}

func (s *served) failures(r load.Result) string {
	failed := r.Failed()
	if len(failed) == 0 {
		return fmt.Sprintf("0 of %d failed", len(r.Answers))
	}
	return fmt.Sprintf("%d of %d failed: %.200s", len(failed), len(r.Answers), failed[0])
}

var predicted = regexp.MustCompile(`(?m)^llamacpp:tokens_predicted_total (\d+)`)

// madeTokens returns how many tokens the servers of all replicas made.
func (s *served) madeTokens() (sum int64) {
	for _, r := range s.now().Live {
		text := measure.Get(fetch(s.ctx, "http://"+s.address(r)+"/metrics"))
		found := predicted.FindStringSubmatch(text)
		if found == nil {
			measure.Fail("no tokens are counted in %s", text)
		}
		sum += measure.Get(strconv.ParseInt(found[1], 10, 64))
	}
	return sum
}

// replace replaces all replicas until at least four were replaced, while clients ask.
func (s *served) replace() {
	stop := s.asked()
	count := 0
	for seed := 1; count < 4; seed++ {
		revision := s.now().Revision + 1
		s.deploy(modelImage, s.now().ServiceWish, modelServer("--seed", strconv.Itoa(seed))...)
		now := s.until("updated", func(now api.Service) bool {
			return now.State == session.ServiceReady && now.Revision == revision && len(now.Live) == s.replicas
		})
		count += len(now.Live)
	}
	got := stop()
	s.report(fmt.Sprintf("%d rolling replacements under load", count), s.failures(got), "", "0 failed",
		len(got.Failed()) == 0)
}

const killClients = 12

// kill kills the server of a replica while clients ask.
func (s *served) kill() {
	stop := s.asked()
	s.pause(time.Second)
	victim := s.now().Live[0]
	begin := time.Now()
	s.dockerSays("kill", container(s.session(victim)))
	s.until("whole again", func(now api.Service) bool {
		for _, r := range now.Live {
			if r.Session == victim.Session {
				return false
			}
		}
		return now.State == session.ServiceReady && len(now.Live) == s.replicas
	})
	took := time.Since(begin)
	got := stop()
	s.report("kill -9 of a replica under load, whole again after "+took.Round(time.Second/10).String(),
		s.failures(got), "", fmt.Sprintf("≤ %d, what was under way there", killClients),
		len(got.Failed()) <= killClients)
}

// asked has clients ask until end is called, which returns what they got.
func (s *served) asked() (end func() load.Result) {
	stop, result := make(chan struct{}), make(chan load.Result, 1)
	go func() {
		result <- load.Run(killClients, math.MaxInt, stop, func(i int) load.Answer {
			return s.ours.Ask(s.ctx, load.Question{Words: 8, Stream: i%2 == 0})
		}, nil)
	}()
	return func() load.Result {
		close(stop)
		return <-result
	}
}
