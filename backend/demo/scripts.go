package demo

import (
	"fmt"
	"time"

	"slipway/gpu"
)

// What sessions run.

// How far apart the lines of a batch are.
const (
	epochLength = 20 * time.Second
	partLength  = 30 * time.Second
)

// training is a script that keeps a part of what it was given busy and prints a
// line an epoch.
func training(cpus int, memory gpu.Bytes, length time.Duration) string {
	return busy(cpus, memory, length) + fmt.Sprintf(`epochs=%d
for epoch in $(seq 1 $epochs); do
  echo "epoch $epoch/$epochs  loss 0.$((9000 / (epoch + 9)))"
  sleep %d
done
`, max(1, int(length/epochLength)), int(epochLength.Seconds()))
}

// features is a script that works through a table part by part.
func features(cpus int, memory gpu.Bytes, length time.Duration) string {
	return busy(cpus, memory, length) + fmt.Sprintf(`parts=%d
for part in $(seq 1 $parts); do
  echo "part $part/$parts  $((part * 48211)) rows"
  sleep %d
done
echo "features.parquet written"
`, max(1, int(length/partLength)), int(partLength.Seconds()))
}

// busy keeps CPUs and memory busy beside the rest of a script.
func busy(cpus int, memory gpu.Bytes, length time.Duration) string {
	return fmt.Sprintf("stress --cpu %d --vm 1 --vm-bytes %d --timeout %d &\n", max(1, cpus*3/4), int64(memory)/10*6,
		int(length.Seconds()))
}

// tooLarge is a script that wants four times the memory that it was given.
func tooLarge(memory gpu.Bytes) string {
	return fmt.Sprintf("echo 'loading %s of features'\nstress --cpu 1 --vm 1 --vm-bytes %d --timeout 60\n", 4*memory,
		int64(4*memory))
}
