package reclaim

import (
	"slices"
	"testing"
)

func TestFramesAreFoundHoweverTheyAreSplit(t *testing.T) {
	stream := []byte{'A', 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 'I', 'R', 0, 0, 0, 4, 0, 'I', 0, 24, 'I', 0, 0, 0, 9, 0, 0,
		0, 0, 0, 0, 0, 0, 'x'}
	for size := 1; size <= len(stream); size++ {
		var f frames
		found := 0
		for chunk := range slices.Chunk(stream, size) {
			if f.feed(chunk, 'I') {
				found++
			}
		}
		if found != 1 {
			t.Errorf("in pieces of %d bytes %d frames were found", size, found)
		}
	}
}
