package sim

import (
	"slipway/gpu"
)

// Exit ends a running container with a code, like a program that ends by itself or is killed.
func (s *containers) Exit(id string, code int) {
	s.finish(id, code)
	if err := s.save(); err != nil {
		s.config.Log.Error("the state of the simulated engine was not written", "error", err)
	}
}

// OOM ends a container like the kernel when memory runs out.
func (s *containers) OOM(id string) {
	s.oom(id)
	s.Exit(id, 137)
}

// Lose removes a container without telling watchers, as when somebody removes it while the event stream is broken.
func (s *containers) Lose(id string) error {
	s.mu.Lock()
	if c, ok := s.byID[id]; ok {
		c.lost = true
	}
	s.mu.Unlock()
	return s.Remove(s.ctx, id)
}

// WriteLog adds whole lines to a container's log.
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

// AddImage adds an image to the machine that no registry needs to have.
func (s *images) AddImage(ref string) error {
	s.mu.Lock()
	s.keep(Image{Ref: fullRef(ref), Size: 120 * gpu.MiB}.describe())
	s.mu.Unlock()
	return s.save()
}

// Evict removes an image from the machine, even if it is in use.
func (s *images) Evict(ref string) error {
	s.mu.Lock()
	if image, ok := s.resolve(ref); ok {
		s.forget(image)
	}
	s.mu.Unlock()
	return s.save()
}
