// Package prometheus reads metrics in the text format of Prometheus.
package prometheus

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Read returns the values of those gauges, counters and untyped metrics of a text that have one of the names. The
// samples of a name are summed over their labels. A name without a sample, with one that is not finite, or of a
// histogram or summary, is absent. A text that is not of the format is an error.
func Read(text string, names []string) (map[string]float64, error) {
	sums, several := map[string]float64{}, map[string]bool{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.Trim(line, " \t\r\n")
		if comment, ok := strings.CutPrefix(line, "#"); ok {
			word := strings.Fields(comment)
			if len(word) == 3 && word[0] == "TYPE" && (word[2] == "histogram" || word[2] == "summary") {
				several[word[1]] = true
			}
			continue
		}
		if line == "" {
			continue
		}
		name, value, err := sample(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if slices.Contains(names, name) {
			sums[name] += value
		}
	}
	for name, sum := range sums {
		if math.IsNaN(sum) || math.IsInf(sum, 0) || several[family(name, several)] {
			delete(sums, name)
		}
	}
	return sums, nil
}

// family is the name of the histogram or summary that a sample is of; its own name if it is of none.
func family(name string, several map[string]bool) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && several[base] {
			return base
		}
	}
	return name
}

// sample reads NAME{LABELS} VALUE TIME, of which the labels and the time may be missing.
func sample(line string) (name string, value float64, err error) {
	end := strings.IndexFunc(line, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != ':'
	})
	if end < 1 || line[0] >= '0' && line[0] <= '9' {
		return "", 0, errors.New("expected the name of a metric and its value")
	}
	name, rest := line[:end], strings.TrimLeft(line[end:], " \t")
	if strings.HasPrefix(rest, "{") {
		if rest, err = afterLabels(rest); err != nil {
			return "", 0, err
		}
	}
	fields := strings.Fields(rest)
	if len(fields) < 1 || len(fields) > 2 {
		return "", 0, fmt.Errorf("expected a value after %s", name)
	}
	value, err = strconv.ParseFloat(fields[0], 64)
	if err == nil && len(fields) == 2 {
		_, err = strconv.ParseInt(fields[1], 10, 64)
	}
	return name, value, err
}

// afterLabels returns what follows the closing brace, which may also stand in the value of a label.
func afterLabels(text string) (string, error) {
	quoted := false
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quoted:
			i++
		case text[i] == '"':
			quoted = !quoted
		case text[i] == '}' && !quoted:
			return text[i+1:], nil
		}
	}
	return "", errors.New("the labels do not end")
}
