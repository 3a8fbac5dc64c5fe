//go:build !linux && !darwin

package netwatch

import (
	"context"
	"time"
)

// pollEvery is how often the addresses are read.
const pollEvery = 2 * time.Second

// listen calls notice regularly, since no event reports changes.
func listen(ctx context.Context, notice func()) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			notice()
		case <-ctx.Done():
			return nil
		}
	}
}
