package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"slipway/backend/session"
)

// scalingFlags are the flags of commands that say how a service is scaled and when it sleeps.
type scalingFlags struct {
	rules    []string
	none     bool
	maySleep bool
}

// scalingHelp explains the flag --rule.
const scalingHelp = `A rule adds replicas while a value is above one threshold, and removes one after it was below
another threshold for the window and the cooldown. Its parts are separated by commas:

  METRIC>NUMBER or METRIC<NUMBER   the metric with its first threshold
  >NUMBER, <NUMBER                 the other threshold
  step=N                           replicas to add at a time (default 1)
  window=TIME                      how long the value must be below (default 1m)
  cooldown=TIME                    pause after a change (default 5m)
  min=N, max=N                     fewest and most replicas (default 1, no limit)

Metrics of the router are waiting, outstanding and rps; of the session gpu_util, gpu_mem,
cpu_util and mem, in percent of what is allocated; any other is one of the server's own
/metrics, such as vllm:num_requests_waiting or framework/tgi_queue_size. Values are means over
the healthy replicas, except waiting. A rule without a value changes nothing.`

func (f *scalingFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.rules, "rule", nil, "scale by a metric, such as 'outstanding>4,<1,max=4'; repeatable")
	flags.BoolVar(&f.maySleep, "may-sleep", false,
		"sleep without requests as soon as another service needs the devices")
}

// change returns what the flags change; nil: nothing.
func (f *scalingFlags) change(cmd *cobra.Command) (rules *[]session.ScalingRule, maySleep *bool, err error) {
	if cmd.Flags().Changed("may-sleep") {
		maySleep = &f.maySleep
	}
	if f.none && len(f.rules) > 0 {
		return nil, nil, usagef("--rule and --no-rules contradict each other")
	}
	if !f.none && len(f.rules) == 0 {
		return nil, maySleep, nil
	}
	list := make([]session.ScalingRule, 0, len(f.rules))
	for _, text := range f.rules {
		rule, err := parseRule(text)
		if err != nil {
			return nil, nil, usagef("--rule %q: %v", text, err)
		}
		list = append(list, rule)
	}
	return &list, maySleep, nil
}

// set changes a wish as the flags say.
func (f *scalingFlags) set(cmd *cobra.Command, wish *session.ServiceWish) error {
	rules, maySleep, err := f.change(cmd)
	if rules != nil {
		wish.Rules = *rules
	}
	if maySleep != nil {
		wish.MaySleep = *maySleep
	}
	return err
}

// parseRule reads a rule as --rule has it.
func parseRule(text string) (r session.ScalingRule, err error) {
	parts := strings.Split(text, ",")
	at := strings.IndexAny(parts[0], "<>")
	if at < 1 {
		return r, errors.New("begin with a metric and a threshold, such as outstanding>4")
	}
	if r.Source, r.Metric, err = parseMetric(strings.TrimSpace(parts[0][:at])); err != nil {
		return r, err
	}
	parts[0] = parts[0][at:]
	set := map[string]bool{}
	for _, part := range parts {
		part = strings.TrimSpace(part)
		name, value, _ := strings.Cut(part, "=")
		if strings.HasPrefix(part, "<") || strings.HasPrefix(part, ">") {
			name, value = part[:1], part[1:]
		}
		if name = strings.TrimSpace(name); set[name] {
			return r, fmt.Errorf("%s is there twice", name)
		}
		set[name] = true
		if err := setPart(&r, name, strings.TrimSpace(value)); err != nil {
			return r, err
		}
	}
	return r, nil
}

// parseMetric returns the source of a metric, which may be written before it.
func parseMetric(name string) (source, metric string, err error) {
	if source, metric, named := strings.Cut(name, "/"); named {
		return source, metric, nil // the machine says which there are
	}
	switch {
	case slices.Contains(session.RouterMetrics, name):
		return session.FromRouter, name, nil
	case slices.Contains(session.DeviceMetrics, name):
		return session.FromDevice, name, nil
	case strings.Contains(name, ":"):
		return session.FromFramework, name, nil
	}
	return "", "", fmt.Errorf("unknown metric %q: write one of %s, or framework/%s if the server has it", name,
		strings.Join(slices.Concat(session.RouterMetrics, session.DeviceMetrics), ", "), name)
}

// setPart sets one part of a rule after its metric.
func setPart(r *session.ScalingRule, name, value string) error {
	counts := map[string]*int{"step": &r.StepSize, "min": &r.MinReplicas, "max": &r.MaxReplicas}
	times := map[string]*session.Duration{"window": &r.Window, "cooldown": &r.Cooldown}
	thresholds := map[string]**float64{">": &r.ScaleUp, "<": &r.ScaleDown}
	switch {
	case thresholds[name] != nil:
		threshold, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(threshold) || math.IsInf(threshold, 0) {
			return fmt.Errorf("%q is not a number after %s", value, name)
		}
		*thresholds[name] = &threshold
	case counts[name] != nil:
		count, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("%q is not a number of replicas after %s=", value, name)
		}
		*counts[name] = count
	case times[name] != nil:
		length, err := session.ParseDuration(value)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*times[name] = length
	default:
		return fmt.Errorf("unknown part %q: write >, <, step=, window=, cooldown=, min= or max=", name)
	}
	return nil
}

// ruleText writes a rule as --rule has it.
func ruleText(r session.ScalingRule) string {
	text := r.Metric
	if source, _, err := parseMetric(r.Metric); err != nil || source != r.Source {
		text = r.Source + "/" + r.Metric
	}
	comma := ""
	for _, threshold := range []struct {
		sign  string
		value *float64
	}{{">", r.ScaleUp}, {"<", r.ScaleDown}} {
		if threshold.value != nil {
			text += comma + threshold.sign + number(*threshold.value)
			comma = ","
		}
	}
	for _, count := range []struct {
		name  string
		value int
	}{{"step", r.StepSize}, {"min", r.MinReplicas}, {"max", r.MaxReplicas}} {
		if count.value > 0 {
			text += fmt.Sprintf(",%s=%d", count.name, count.value)
		}
	}
	if r.Window > 0 {
		text += ",window=" + r.Window.String()
	}
	if r.Cooldown > 0 {
		text += ",cooldown=" + r.Cooldown.String()
	}
	return text
}

func number(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

// rulesText has the rules of a service in lines, each with its value if that is known.
func rulesText(s session.Service) string {
	lines := each(s.Rules, ruleText)
	for i := range min(len(lines), len(s.Scaling.Rules)) {
		if value := s.Scaling.Rules[i].Value; value != nil {
			lines[i] += ": " + number(*value)
		} else {
			lines[i] += ": no value"
		}
	}
	return strings.Join(lines, "\n")
}
