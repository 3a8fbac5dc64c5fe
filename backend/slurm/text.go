package slurm

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"slipway/gpu"
)

// The most that is accepted of what commands print, in bytes.
const (
	maxOutput = 32 << 20 // more than 100,000 jobs take
	maxSaid   = 4 << 10  // on standard error
	maxName   = 256      // of a node, a partition, an account and the like
	maxReason = 200
	maxNotes  = 1 << 10 // of a comment
)

// separator separates the fields of a line of squeue, sinfo and sacct. No name has it.
const separator = "\x1f"

// clean returns text as printable UTF-8 of at most most bytes. Other characters become spaces, and spaces around it are
// removed.
func clean(text string, most int) string {
	text = strings.TrimSpace(text[:min(len(text), 4*most)])
	if strings.ContainsFunc(text, foreign) {
		text = strings.TrimSpace(strings.Map(func(r rune) rune {
			if foreign(r) {
				return ' '
			}
			return r
		}, text))
	}
	if len(text) > most {
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text = strings.TrimSpace(text[:most])
	}
	return text
}

// foreign reports whether a character cannot be shown. Bytes that are not UTF-8 are read as [utf8.RuneError].
func foreign(r rune) bool { return r == utf8.RuneError || r != ' ' && !unicode.IsPrint(r) }

// word is a name in a field; (null) and the like are none.
func word(text string) string {
	switch text {
	case "(null)", "N/A", "n/a", "None", "NONE", "None assigned":
		return ""
	}
	return clean(text, maxName)
}

// words are the names in a field, separated by commas.
func words(text string) (names []string) {
	if word(text) == "" {
		return nil
	}
	for name := range strings.SplitSeq(text, ",") {
		if name = word(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

var errIncomplete = errors.New("what the command printed ends in the middle of a line")

// lines are the lines of what a command printed. All of them end with a line feed, or the command was interrupted.
func lines(out []byte) (iter.Seq[string], error) {
	if len(out) > 0 && out[len(out)-1] != '\n' {
		return nil, errIncomplete
	}
	text := string(out)
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if line = strings.TrimSuffix(line, "\n"); line != "" && !yield(line) {
				return
			}
		}
	}, nil
}

// number reads a whole number of at least 0; anything else is 0.
func number(text string) int {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}

// priority reads a whole number of at least 0; anything else is 0.
func priority(text string) int64 {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0
	}
	return int64(n)
}

// mebibytes reads an amount of memory as Slurm prints it, in MiB if it has no unit; anything else is 0.
func mebibytes(text string) gpu.Bytes {
	text = strings.TrimSuffix(text, "+")
	if n, err := strconv.ParseUint(text, 10, 40); err == nil {
		return gpu.Bytes(n) * gpu.MiB
	}
	amount, err := gpu.ParseBytes(text)
	if err != nil {
		return 0
	}
	return amount
}

// moment reads a time, as seconds since 1970 or in the time zone of this computer. zero: unknown.
func moment(text string) time.Time {
	if seconds, err := strconv.ParseInt(text, 10, 36); err == nil && seconds > 0 {
		return time.Unix(seconds, 0)
	}
	at, err := time.ParseInLocation("2006-01-02T15:04:05", text, time.Local)
	if err != nil || at.Unix() <= 0 {
		return time.Time{}
	}
	return at
}

// Unlimited is a time limit that never comes.
const Unlimited time.Duration = math.MaxInt64

// span reads a length of time: 30, 30:00, 1:30:00 or 2-01:30:00, where a number alone is minutes. It is 0 if Slurm says
// that there is none, or anything else.
func span(text string) time.Duration {
	switch strings.ToUpper(text) {
	case "UNLIMITED", "INFINITE":
		return Unlimited
	}
	days, rest, dayed := strings.Cut(text, "-")
	if !dayed {
		days, rest = "0", text
	}
	parts := strings.Split(rest, ":")
	units := []time.Duration{time.Minute}
	switch {
	case len(parts) > 3 || dayed && days == "":
		return 0
	case dayed:
		units = []time.Duration{time.Hour, time.Minute, time.Second}
	case len(parts) == 2:
		units = []time.Duration{time.Minute, time.Second}
	case len(parts) == 3:
		units = []time.Duration{time.Hour, time.Minute, time.Second}
	}
	var sum time.Duration
	for i, part := range append(parts, days) {
		n, err := strconv.ParseUint(part, 10, 20) // a million days are no overflow of 64 bits
		if err != nil {
			return 0
		}
		if i == len(parts) {
			return sum + time.Duration(min(n, 36500))*24*time.Hour
		}
		sum += time.Duration(n) * units[i]
	}
	return sum
}

// seconds reads a length of time of Slurm's configuration, such as "30 sec".
func seconds(text string) time.Duration {
	digits, _, _ := strings.Cut(text, " ")
	return time.Duration(number(digits)) * time.Second
}

// inMinutes writes a time limit as Slurm reads it, rounded up to whole minutes.
func inMinutes(limit time.Duration) string {
	if limit == Unlimited {
		return "UNLIMITED"
	}
	return fmt.Sprint(int64((limit-1)/time.Minute) + 1)
}
