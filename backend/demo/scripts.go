package demo

import (
	"fmt"
	"time"

	"slipway/gpu"
)

// training is a script that keeps a part of what it was given busy and prints a line an epoch.
func training(cpus int, memory gpu.Bytes, length time.Duration) string {
	return busy(cpus, memory, length) + steps(length, 20*time.Second, "epoch", "loss 0.$((9000 / (epoch + 9)))")
}

// features is a script that works through a table part by part.
func features(cpus int, memory gpu.Bytes, length time.Duration) string {
	return busy(cpus, memory, length) + steps(length, 30*time.Second, "part", "$((part * 48211)) rows") +
		"echo \"features.parquet written\"\n"
}

// steps prints a line for each step of a length.
func steps(length, each time.Duration, name, line string) string {
	return fmt.Sprintf(`%[1]ss=%[3]d
for %[1]s in $(seq 1 $%[1]ss); do
  echo "%[1]s $%[1]s/$%[1]ss  %[2]s"
  sleep %[4]d
done
`, name, line, max(1, int(length/each)), int(each.Seconds()))
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
