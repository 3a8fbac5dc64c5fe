package demo

import (
	"fmt"
	"math/rand/v2"
	"time"

	"slipway/gpu"
)

// What sessions run, and what they write while they do: a log of the past says
// what its command would say today.

// How far apart the lines of a batch are.
const (
	epochLength = 20 * time.Second
	partLength  = 30 * time.Second
)

// training is a script that keeps a part of what it was given busy and prints a
// line an epoch. broken is the epoch in which it fails, 0 for none.
func training(cpus int, memory gpu.Bytes, length time.Duration, broken int) string {
	breaks := ""
	if broken > 0 {
		breaks = fmt.Sprintf("  if [ $epoch = %d ]; then echo '%s' >&2; exit 1; fi\n", broken, noMemory)
	}
	return busy(cpus, memory, length) + fmt.Sprintf(`epochs=%d
for epoch in $(seq 1 $epochs); do
  echo "epoch $epoch/$epochs  loss 0.$((9000 / (epoch + 9)))"
%s  sleep %d
done
`, epochs(length), breaks, int(epochLength.Seconds()))
}

const noMemory = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB"

func epochs(length time.Duration) int { return max(1, int(length/epochLength)) }

// trained is what such a script of a length writes while it runs for a while.
func trained(length, ran time.Duration, broken int) (log []logLine) {
	all := epochs(length)
	for epoch := 1; epoch <= all; epoch++ {
		at := time.Duration(epoch-1) * epochLength
		if at > ran {
			break
		}
		log = append(log, logLine{After: at, Text: fmt.Sprintf("epoch %d/%d  loss 0.%d", epoch, all,
			9000/(epoch+9))})
		if epoch == broken {
			return append(log, logLine{After: at, Text: noMemory})
		}
	}
	return log
}

// features is a script that works through a table part by part.
func features(cpus int, memory gpu.Bytes, length time.Duration) string {
	return busy(cpus, memory, length) + fmt.Sprintf(`parts=%d
for part in $(seq 1 $parts); do
  echo "part $part/$parts  $((part * %d)) rows"
  sleep %d
done
echo "features.parquet written"
`, parts(length), rowsOfPart, int(partLength.Seconds()))
}

const rowsOfPart = 48211

func parts(length time.Duration) int { return max(1, int(length/partLength)) }

// extracted is what such a script of a length writes while it runs for a while.
func extracted(length, ran time.Duration) (log []logLine) {
	all := parts(length)
	for part := 1; part <= all; part++ {
		at := time.Duration(part-1) * partLength
		if at > ran {
			return log
		}
		log = append(log, logLine{After: at, Text: fmt.Sprintf("part %d/%d  %d rows", part, all, part*rowsOfPart)})
	}
	if end := time.Duration(all) * partLength; end <= ran {
		log = append(log, logLine{After: end, Text: "features.parquet written"})
	}
	return log
}

// busy keeps CPUs and memory busy beside the rest of a script.
func busy(cpus int, memory gpu.Bytes, length time.Duration) string {
	return fmt.Sprintf("stress --cpu %d --vm 1 --vm-bytes %d --timeout %d &\n", max(1, cpus*3/4), int64(memory)/10*6,
		int(length.Seconds()))
}

// tooLarge is a script that wants four times the memory that it was given.
func tooLarge(memory gpu.Bytes) string {
	return fmt.Sprintf("echo '%s'\nstress --cpu 1 --vm 1 --vm-bytes %d --timeout 60\n", loading(memory),
		int64(4*memory))
}

func loading(memory gpu.Bytes) string { return fmt.Sprintf("loading %s of features", 4*memory) }

// noted is what a Jupyter server writes that was started at a time and worked
// with for a while.
func noted(rng *rand.Rand, started time.Time, ran time.Duration) (log []logLine) {
	say := func(after time.Duration, text string) {
		if after < ran {
			stamp := started.Add(after).Format("2006-01-02 15:04:05.000")
			log = append(log, logLine{After: after, Text: fmt.Sprintf("[I %s ServerApp] %s", stamp, text)})
		}
	}
	began := 4*time.Second + some(rng, 20*time.Second)
	say(began, "Serving notebooks from local directory: /home/work")
	say(began+40*time.Millisecond, "Jupyter Server 2.14.2 is running at:")
	say(began+40*time.Millisecond, "http://localhost:8888/lab")
	at := began + 8*time.Second
	say(at, fmt.Sprintf("Kernel started: %08x-%04x-4%03x-a%03x-%012x", rng.Uint32(), rng.IntN(1<<16), rng.IntN(1<<12),
		rng.IntN(1<<12), rng.Int64N(1<<48)))
	for at += some(rng, 4*time.Minute); at < ran; at += 2*time.Minute + some(rng, 5*time.Minute) {
		say(at, "Saving file at /churn/explore.ipynb")
	}
	return log
}

// served is what a server of a model writes that answers requests for a while.
func served(rng *rand.Rand, ran time.Duration) (log []logLine) {
	began := 9*time.Second + some(rng, 9*time.Second)
	for i, text := range []string{"Started server process [41]", "Waiting for application startup.",
		"Application startup complete.", "Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)"} {
		log = append(log, logLine{After: began + time.Duration(i)*15*time.Millisecond, Text: "INFO:     " + text})
	}
	for at := began + some(rng, time.Minute); at < ran; at += 5*time.Second + some(rng, time.Minute) {
		log = append(log, logLine{After: at,
			Text: fmt.Sprintf(`INFO:     127.0.0.1:%d - "POST /transcribe HTTP/1.1" 200 OK`, 32768+rng.IntN(28000))})
	}
	return log
}

// some is a random part of a length, in whole milliseconds.
func some(rng *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(most/time.Millisecond))) * time.Millisecond
}
