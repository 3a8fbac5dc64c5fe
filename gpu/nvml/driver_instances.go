//go:build linux && cgo

package nvml

import (
	"math"
	"slices"
	"time"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// monitoring are the calls of the driver's performance monitoring (GPM), which reports how busy a GPU instance is, from
// the Hopper generation on. All are needed.
var monitoring = []string{
	"nvmlGpmQueryDeviceSupport", "nvmlDeviceGetGpuInstanceId", "nvmlGpmSampleAlloc", "nvmlGpmMigSampleGet",
	"nvmlGpmMetricsGet", "nvmlGpmSampleFree",
}

// apart is the shortest time between two samples that are compared.
const apart = 100 * time.Millisecond

// place is one GPU instance, which several compute instances may share.
type place struct {
	device string
	id     int // the driver's; negative: unknown
}

type performance struct {
	sample lib.GpmSample
	at     time.Time
}

// instanceReadings returns how busy each instance of a divided device was since the previous reading, if the driver
// monitors that. For compute instances that share a GPU instance it is unknown.
func (l *library) instanceReadings(d device, instances []device) []instanceReading {
	readings, places := make([]instanceReading, len(instances)), make([]place, len(instances))
	code := l.monitors(d)
	l.noteMonitoring("nvmlGpmQueryDeviceSupport", d, code)
	for i, in := range instances {
		readings[i].UUID = in.uuid
		places[i] = place{d.uuid, -1}
		if code == 0 {
			places[i].id = l.instanceID(d, in)
		}
	}
	for i, at := range places {
		if at.id >= 0 && slices.Index(places, at) == i && !slices.Contains(places[i+1:], at) {
			readings[i].Busy = l.busy(d, at)
		}
	}
	for at, last := range l.performance {
		if at.device == d.uuid && !slices.Contains(places, at) {
			l.free(d, last.sample)
			delete(l.performance, at)
		}
	}
	return readings
}

func (l *library) monitors(d device) int {
	for _, call := range monitoring {
		if !l.has(call) {
			return codeMissing
		}
	}
	support, code := read(l, "nvmlGpmQueryDeviceSupport", d.uuid, d.GpmQueryDeviceSupport)
	if code == 0 && support.IsSupportedDevice == 0 {
		return int(lib.ERROR_NOT_SUPPORTED)
	}
	return code
}

// noteMonitoring notes a failure, unless the driver does not monitor, or not for this user; the inventory reports that.
func (l *library) noteMonitoring(call string, d device, code int) {
	if code != codeMissing && code != int(lib.ERROR_NO_PERMISSION) {
		l.note(call, d.uuid, code)
	}
}

func (l *library) probeMonitoring(d device, instances []device) (code int) {
	if code = l.monitors(d); code != 0 || len(instances) == 0 {
		return code
	}
	sample, code := l.performanceOf(d, l.instanceID(d, instances[0]))
	if code == 0 {
		l.free(d, sample)
	}
	return code
}

func (l *library) instanceID(d, in device) int {
	if id, ok := askFor(l, "nvmlDeviceGetGpuInstanceId", d.uuid, in.GetGpuInstanceId); ok {
		return id
	}
	return -1
}

// performanceOf takes a sample of a GPU instance, which the caller must free.
func (l *library) performanceOf(d device, instance int) (sample lib.GpmSample, code int) {
	if sample, code = read(l, "nvmlGpmSampleAlloc", d.uuid, l.nvml.GpmSampleAlloc); code != 0 {
		return nil, code
	}
	if code = l.call("nvmlGpmMigSampleGet", d.uuid,
		func() lib.Return { return d.GpmMigSampleGet(instance, sample) }); code != 0 {
		l.free(d, sample)
		return nil, code
	}
	return sample, 0
}

func (l *library) free(d device, sample lib.GpmSample) {
	l.call("nvmlGpmSampleFree", d.uuid, sample.Free)
}

// busy returns how much of the time since the previous sample a GPU instance had work, in hundredths of a percent; nil
// if unknown. After a failure the next comparison starts over.
func (l *library) busy(d device, at place) *int {
	last, known := l.performance[at]
	if known && time.Since(last.at) < apart {
		return nil
	}
	delete(l.performance, at)
	if known {
		defer l.free(d, last.sample)
	}
	sample, code := l.performanceOf(d, at.id)
	l.noteMonitoring("nvmlGpmMigSampleGet", d, code)
	if code != 0 {
		return nil
	}
	l.performance[at] = performance{sample: sample, at: time.Now()}
	if !known {
		return nil
	}
	return l.compare(d, last.sample, sample)
}

func (l *library) compare(d device, before, after lib.GpmSample) *int {
	const call = "nvmlGpmMetricsGet"
	metrics := lib.GpmMetricsGetType{NumMetrics: 1, Sample1: before, Sample2: after}
	metrics.Metrics[0].MetricId = uint32(lib.GPM_METRIC_GRAPHICS_UTIL)
	code := l.call(call, d.uuid, func() lib.Return { return l.nvml.GpmMetricsGet(&metrics) })
	metric := metrics.Metrics[0]
	if code == 0 {
		code = int(metric.NvmlReturn)
	}
	// Counters that are read one after the other may pass the whole by a little.
	const tolerated = maxUtil + 1
	if code == 0 && !(metric.Value >= 0 && metric.Value <= tolerated) {
		code = codeNonsense
	}
	l.noteMonitoring(call, d, code)
	if code != 0 {
		return nil
	}
	return new(int(math.Round(min(metric.Value, maxUtil) * 100)))
}
