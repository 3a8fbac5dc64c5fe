package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestWhatWasGivenUpIsNotLogged(t *testing.T) {
	var out bytes.Buffer
	log := logTo(&out).With("part", "agent")
	log.Warn("given up", "err", fmt.Errorf("removing: %w", context.Canceled))
	log.Warn("failed", "err", errors.New("no space"))
	log.WithGroup("more").Warn("late", "err", context.DeadlineExceeded)
	log.Info("plain")
	if strings.Contains(out.String(), "given up") || strings.Count(out.String(), "\n") != 3 ||
		!strings.Contains(out.String(), `msg=failed part=agent err="no space"`) {
		t.Errorf("%s", out.String())
	}
}
