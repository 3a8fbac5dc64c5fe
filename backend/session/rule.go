package session

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// ScalingRule changes the number of replicas by a metric, with the fields of Backend.AI's autoscaling rules.
type ScalingRule struct {
	Source      string   `json:"metricSource"` // [FromRouter], [FromFramework] or [FromDevice]
	Metric      string   `json:"metricName"`
	ScaleUp     *float64 `json:"scaleUpThreshold,omitempty"`   // up when the value is above; nil: never
	ScaleDown   *float64 `json:"scaleDownThreshold,omitempty"` // down when the value stays below; nil: never
	StepSize    int      `json:"stepSize,omitempty"`           // upwards; 0: 1. Downwards it is always 1
	Window      Duration `json:"window,omitempty"`             // that the value stays below; 0: 1 min
	Cooldown    Duration `json:"cooldown,omitempty"`           // after a change; 0: 5 min
	MinReplicas int      `json:"minReplicas,omitempty"`        // 0: 1
	MaxReplicas int      `json:"maxReplicas,omitempty"`        // 0: no limit
}

// The sources of the values of rules.
const (
	FromRouter    = "router"    // a metric of [RouterMetrics]
	FromFramework = "framework" // a gauge, counter or untyped metric that the server has at /metrics, by its name there
	FromDevice    = "device"    // a metric of [DeviceMetrics]
)

// The metrics that have fixed names. All but [MetricWaiting] are means over the healthy replicas.
const (
	MetricWaiting     = "waiting"     // requests that no replica has taken yet
	MetricOutstanding = "outstanding" // requests under way
	MetricRPS         = "rps"         // requests in a second, over the last 30 s
	MetricGPUUtil     = "gpu_util"    // percent of the devices, of a shared one of the part that is allocated
	MetricGPUMem      = "gpu_mem"     // percent of the device memory that is allocated
	MetricCPUUtil     = "cpu_util"    // percent of the CPUs that are allocated
	MetricMem         = "mem"         // percent of the memory that is allocated
)

// The metrics of the sources that have a fixed list.
var (
	RouterMetrics = []string{MetricWaiting, MetricOutstanding, MetricRPS}
	DeviceMetrics = []string{MetricGPUUtil, MetricGPUMem, MetricCPUUtil, MetricMem}
)

// Defaults of a [ScalingRule].
const (
	DefaultWindow   = Duration(time.Minute)
	DefaultCooldown = Duration(5 * time.Minute)
)

// ServiceScaling is how many replicas a service wants, and what its rules do.
type ServiceScaling struct {
	Target    int         `json:"target"`             // replicas that are wanted now, while it is awake
	ChangedAt time.Time   `json:"changedAt,omitzero"` // when a rule last changed Target; zero: never
	Rules     []RuleState `json:"rules,omitempty"`    // one for each rule, in their order; empty: not known yet
}

// RuleState is what a scaling rule does.
type RuleState struct {
	Value *float64 `json:"value,omitempty"` // of its metric; nil: unknown
	Does  RuleDoes `json:"does"`
	// when it changes the number of replicas if the value stays as it is; zero: not at a time that is known
	Due time.Time `json:"due,omitzero"`
}

// RuleDoes says what a scaling rule does now.
type RuleDoes string

// What a rule does.
const (
	RuleRests   RuleDoes = "rests"   // the service is stopped, asleep or failed
	RuleMissing RuleDoes = "missing" // no healthy replica has a value, so it decides nothing
	RuleWithin  RuleDoes = "within"  // the value is at or between the thresholds
	RuleAbove   RuleDoes = "above"   // it adds replicas, at Due, and once those that start are healthy
	RuleBelow   RuleDoes = "below"   // it removes a replica at Due
	RuleHeld    RuleDoes = "held"    // the value is below, but the value of a rule is missing for some replica
	RuleMost    RuleDoes = "most"    // the value is above, but there are MaxReplicas
	RuleFewest  RuleDoes = "fewest"  // the value is below, but there are MinReplicas
)

// Bounds of a [ScalingRule] and its value.
const (
	MaxRuleValue = 1e12 // a metric above it, or below its negative, has no value
	maxMetric    = 128  // bytes of a name
	maxThreshold = 1e9
)

// ValidMetric reports whether a name can be that of a metric in the text format of Prometheus.
func ValidMetric(name string) bool {
	return name != "" && len(name) <= maxMetric && (name[0] < '0' || name[0] > '9') &&
		!strings.ContainsFunc(name, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != ':'
		})
}

func (r ScalingRule) validate(f *findings, field string) {
	r.validateMetric(f, field)
	for _, threshold := range []struct {
		name  string
		value *float64
	}{{"scaleUpThreshold", r.ScaleUp}, {"scaleDownThreshold", r.ScaleDown}} {
		f.refuse(threshold.value != nil && !(*threshold.value >= 0 && *threshold.value <= maxThreshold),
			field+"."+threshold.name, KindRange, "A threshold is negative or too large.", "Write a number from 0.")
	}
	f.refuse(r.ScaleUp == nil && r.ScaleDown == nil, field+".scaleUpThreshold", KindRequired,
		"The rule has no threshold.", "Say above which value replicas are added, below which one is removed, or both.")
	f.refuse(r.ScaleUp != nil && r.ScaleDown != nil && *r.ScaleDown >= *r.ScaleUp, field+".scaleDownThreshold",
		KindConflict, "The lower threshold is not below the upper one.", "Leave room between them.")
	for _, number := range []struct {
		name  string
		value int
	}{{"stepSize", r.StepSize}, {"minReplicas", r.MinReplicas}, {"maxReplicas", r.MaxReplicas}} {
		f.refuse(number.value < 0 || number.value > MaxReplicas, field+"."+number.name, KindRange,
			fmt.Sprintf("A number of replicas is not between 0 and %d.", MaxReplicas),
			"Leave it empty for the default.")
	}
	f.refuse(r.MaxReplicas > 0 && r.MinReplicas > r.MaxReplicas, field+".maxReplicas", KindConflict,
		"The rule allows fewer replicas than it keeps.", "Make the maximum at least the minimum.")
	for _, length := range []struct {
		name  string
		value Duration
	}{{"window", r.Window}, {"cooldown", r.Cooldown}} {
		f.refuse(length.value != 0 && !plausible(length.value, Duration(time.Second)), field+"."+length.name, KindRange,
			"A length of time is not between 1 s and 520 w.", "Write for example 1m, or leave it empty.")
	}
}

func (r ScalingRule) validateMetric(f *findings, field string) {
	known := map[string][]string{FromRouter: RouterMetrics, FromDevice: DeviceMetrics}[r.Source]
	switch {
	case r.Source == FromFramework:
		f.refuse(!ValidMetric(r.Metric), field+".metricName", KindInvalid,
			fmt.Sprintf("%q is not the name of a metric.", Clip(r.Metric)),
			"Write it as the server does at /metrics, for example vllm:num_requests_waiting.")
	case known == nil:
		f.add(field+".metricSource", KindInvalid, fmt.Sprintf("%q is not a source of a metric.", Clip(r.Source)),
			"Write router, framework or device.")
	default:
		f.refuse(!slices.Contains(known, r.Metric), field+".metricName", KindInvalid,
			fmt.Sprintf("The source %s has no metric %q.", r.Source, Clip(r.Metric)),
			"Its metrics are "+strings.Join(known, ", ")+".")
	}
}
