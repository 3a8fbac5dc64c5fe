package scheduler

import (
	"strings"

	"slipway/backend/session"
	"slipway/gpu"
)

// sentence is a phrase, alone in a list that many reasons share, its English, and its details.
type sentence struct {
	one     [1]session.Phrase
	said    []session.Phrase // one
	text    string
	details *sentence
	whole   string // with the details; empty: not made
}

func spoken(p session.Phrase) *sentence {
	s := &sentence{one: [1]session.Phrase{p}, text: p.English()}
	s.said = s.one[:]
	return s
}

// waitFor returns a reason. One of a single sentence shares its phrases.
func waitFor(code session.Code, sentences ...*sentence) session.Wait {
	if s := sentences[0]; len(sentences) == 1 {
		if s.details == nil {
			return session.Wait{Code: code, Message: s.text, Said: s.said}
		}
		if s.whole == "" {
			s.whole = s.text + " " + s.details.text
		}
		return session.Wait{Code: code, Message: s.whole, Said: s.said, Details: s.details.said}
	}
	texts, said := make([]string, 0, 4), make([]session.Phrase, 0, len(sentences)) // texts stays on the stack
	for _, s := range sentences {
		texts, said = append(texts, s.text), append(said, s.said...)
	}
	return session.Wait{Code: code, Message: strings.Join(texts, " "), Said: said}
}

// lack is a lack of devices. ring has the details of devices, CPUs, memory and devices again, so that those of all that
// is lacking are a part of it, which many reasons share.
type lack struct {
	said *sentence
	code session.Code
	ring [4]session.Phrase
}

// explain says what is lacking for q, and who has it.
func (r *room) explain(q Request) session.Wait {
	t := r.describe(r.viewer(q.Owner))
	said, code := make([]*sentence, 0, 3), session.CodeWaitResources
	lacks := lacks{cpus: q.cpus() > len(r.free), memory: q.memory() > r.memory}
	l := t.amounts
	if !q.GPU.IsZero() {
		part := q.part()
		known := t.lacking[part]
		if known == nil {
			if _, ok := r.devices(q, nil); !ok {
				known = t.explainDevices(q)
				t.lacking[part] = known
			}
		}
		if known != nil {
			lacks.devices, l = true, known
			said, code = append(said, l.said), l.code
		}
	}
	if lacks.cpus {
		said = append(said, r.clause(t, amount{n: int64(q.cpus()), kernels: q.kernels(), besides: len(said) > 0}))
	}
	if lacks.memory {
		said = append(said, r.clause(t, amount{n: int64(q.memory()), memory: true, kernels: q.kernels(),
			besides: len(said) > 0}))
	}
	if len(said) == 1 {
		return waitFor(code, said[0])
	}
	w := session.Wait{Code: session.CodeWaitResources, Said: make([]session.Phrase, 0, len(said))}
	texts := make([]string, 0, 6) // they stay on the stack
	for _, s := range said {
		texts, w.Said = append(texts, s.text), append(w.Said, s.said...)
	}
	from, to := 0, 3 // of the ring
	devices := l.said.details
	switch {
	case devices != nil && lacks.devices && !lacks.cpus:
		from, to = 2, 4
	case devices == nil || !lacks.devices:
		from = 1
		if !lacks.cpus {
			from = 2
		}
	}
	if !lacks.memory {
		to = 2
	}
	around := [...]*sentence{devices, t.cpus, t.memory, devices}
	for _, s := range around[from:to] {
		texts = append(texts, s.text)
	}
	w.Message, w.Details = strings.Join(texts, " "), l.ring[from:to:to]
	return w
}

// lack makes a lack of devices. said may have no details.
func (t *texts) lack(said *sentence) *lack {
	l := &lack{said: said, code: session.CodeWaitResources}
	l.ring[1], l.ring[2] = t.cpus.said[0], t.memory.said[0]
	if said.details != nil {
		l.ring[0], l.ring[3] = said.details.said[0], said.details.said[0]
	}
	return l
}

func (r *room) clause(t *texts, a amount) *sentence {
	if text, known := t.few[a]; known {
		return text
	}
	what := count("cpuOf", len(r.machine.CPUs), as("amount", number(int(a.n))))
	if a.memory {
		what = session.Say("memoryOf", as("amount", plain(gpu.Bytes(a.n).String())),
			as("all", plain(r.machine.Memory.String())))
	}
	if a.kernels > 1 {
		what = count("forKernels", a.kernels, as("what", what))
	}
	what.Hole = "what"
	var said *sentence
	var free session.Phrase
	if a.memory {
		free = session.Fill("free", max(0, r.memory).String())
	}
	switch {
	case a.memory && a.besides:
		said = spoken(session.Say("fewMemoryToo", what, free))
	case a.memory:
		said = spoken(session.Say("fewMemory", what, free, t.machine))
	case a.besides:
		said = spoken(count("fewCpusToo", len(r.free), what))
	default:
		said = spoken(count("fewCpus", len(r.free), what, t.machine))
	}
	if said.details = t.cpus; a.memory {
		said.details = t.memory
	}
	t.few[a] = said
	return said
}
