package sim

import (
	"slipway/gpu"
)

// Exit ends a running container with a code, as a program that ends by itself or is killed from outside.
func (s *containers) Exit(id string, code int) {
	s.finish(id, code)
	if err := s.save(); err != nil {
		s.config.Log.Error("the state of the simulated engine was not written", "error", err)
	}
}

// OOM ends a container as the kernel does when its memory has run out.
func (s *containers) OOM(id string) {
	s.oom(id)
	s.Exit(id, 137)
}

// Lose makes a container vanish without a word to watchers, as when somebody removes it while the engine's events are
// not heard.
func (s *containers) Lose(id string) error {
	s.mu.Lock()
	if c, ok := s.byID[id]; ok {
		c.lost = true
	}
	s.mu.Unlock()
	return s.Remove(s.ctx, id)
}

// WriteLog adds whole lines to what a container wrote.
func (s *containers) WriteLog(id string, lines ...string) {
	s.mu.Lock()
	c, ok := s.byID[id]
	s.mu.Unlock()
	for _, line := range lines {
		if ok {
			c.log.line(line)
		}
	}
}

// AddImage puts an image on the machine that no registry needs to have.
func (s *images) AddImage(ref string) error {
	s.mu.Lock()
	s.keep(Image{Ref: fullRef(ref), Size: 120 * gpu.MiB}.describe())
	s.mu.Unlock()
	return s.save()
}

// Evict takes an image from the machine, whoever uses it.
func (s *images) Evict(ref string) error {
	s.mu.Lock()
	if image, ok := s.resolve(ref); ok {
		s.forget(image)
	}
	s.mu.Unlock()
	return s.save()
}
