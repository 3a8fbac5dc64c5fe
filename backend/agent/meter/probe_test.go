package meter

import (
	"testing"
	"time"
)

func TestProbeMeasuresThisMachine(t *testing.T) {
	p := new(probe)
	if _, err := p.load(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
	}
	l, err := p.load(t.TempDir())
	if err != nil || l.CPU <= 0 || len(l.Busy) == 0 || l.Memory == 0 || l.DiskTotal == 0 || l.DiskFree == 0 {
		t.Errorf("%+v, %v", l, err)
	}
}
