package nvml

import (
	"fmt"
	"time"

	"slipway/gpu"
)

// answers are the library's codes in words. The library is not asked for them, because it may lack the function.
var answers = map[int]string{
	1: "it was not started", 2: "that an argument is wrong", 3: "that this is not supported",
	4: "that this user may not ask",
	6: "that it found nothing", 7: "that the list does not fit", 8: "that the card's power cables are not connected",
	9:  "that the driver is not loaded",
	10: "that it ran out of time", 11: "that the card's interrupts do not work", 12: "that a library is absent",
	13: "that this driver lacks the function",
	14: "that the card's settings are damaged", 15: "that the device fell off the bus",
	16: "that the device must be reset", 17: "that the system refused",
	18: "that driver and library are of different versions", 19: "that the device is in use", 20: "that memory ran out",
	21: "that there are no data",
	23: "that something ran out", 25: "that it knows no such version of the question", 27: "that it is not ready",
	28: "that no such device exists",
	29: "that the device is in a state that forbids it", 999: "that something unknown went wrong",
}

// subjects are what each call reads, to be put before "is unknown".
var subjects = map[string]string{
	"nvmlDeviceGetHandleByIndex":              "everything about it",
	"nvmlDeviceGetUUID":                       "its name",
	"nvmlDeviceGetName":                       "its model",
	"nvmlDeviceGetPciInfo":                    "its place on the bus",
	"nvmlDeviceGetMemoryInfo":                 "its memory",
	"nvmlDeviceGetPowerUsage":                 "its power",
	"nvmlDeviceGetEnforcedPowerLimit":         "the limit of its power",
	"nvmlDeviceGetTotalEnergyConsumption":     "its energy",
	"nvmlDeviceGetTemperature":                "its temperature",
	"nvmlDeviceGetUtilizationRates":           "its utilisation",
	"nvmlDeviceGetSamples":                    "the course of its utilisation",
	"nvmlDeviceGetProcessUtilization":         "which process kept it busy",
	"nvmlDeviceGetComputeRunningProcesses":    "which programs compute on it",
	"nvmlDeviceGetGraphicsRunningProcesses":   "which programs draw with it",
	"nvmlDeviceGetMPSComputeRunningProcesses": "which programs share it through MPS",
	"nvmlDeviceGetAccountingPids":             "which programs ended on it",
	"nvmlDeviceGetAccountingStats":            "what ended programs did on it",
	"nvmlDeviceGetMigMode":                    "whether it is divided",
	"nvmlDeviceGetMaxMigDeviceCount":          "into what it is divided",
	"nvmlDeviceGetMigDeviceHandleByIndex":     "into what it is divided",
	"nvmlGpmQueryDeviceSupport":               "whether its instances are monitored",
	"nvmlDeviceGetGpuInstanceId":              "which instance is which",
	"nvmlGpmMigSampleGet":                     "how busy its instances are",
	"nvmlGpmMetricsGet":                       "how busy its instances are",
	"nvmlSystemGetDriverVersion":              "the version of the driver",
}

func (l loss) sentence(name string, why func(loss) string) string {
	subject, ok := subjects[l.Call]
	if !ok {
		subject = "what " + l.Call + " tells"
	}
	if l.Call == "" {
		subject = "everything about it"
	}
	text := subject + " is unknown: " + l.reason(why)
	if name == "" {
		return text
	}
	return name + ": " + text
}

func (l loss) reason(why func(loss) string) string {
	switch l.Code {
	case codeMissing:
		return "the driver's library lacks " + l.Call
	case codePanicked:
		return l.Call + " changed its answer while it was read"
	case codeOmitted:
		return why(l)
	case codeNonsense:
		return l.Call + " answered what cannot be true"
	}
	if text, ok := answers[l.Code]; ok {
		return fmt.Sprintf("%s answered %s (%d)", l.Call, text, l.Code)
	}
	return fmt.Sprintf("%s answered %d", l.Call, l.Code)
}

func (f fault) problem() *gpu.Error {
	e := &gpu.Error{Code: gpu.CodeSourceUnavailable}
	switch f.Code {
	case codeNoCgo:
		e.Code = gpu.CodeSourceNotSupported
		e.Message = "This build of Slipway cannot read NVIDIA devices."
		e.Hint = "Use a build for Linux that was made with a C compiler (`make build`)."
	case codeNoFile:
		e.Message = "There is an NVIDIA device, but its driver's library cannot be loaded: " + f.Text + "."
		e.Hint = "Install the NVIDIA driver (the package that holds libnvidia-ml.so.1), and see that nvidia-smi works."
	case codeMissing:
		e.Message = "libnvidia-ml.so.1 cannot be used: it lacks " + f.Call + "."
		e.Hint = "Reinstall the NVIDIA driver."
	case codeNoPermission:
		e.Message = "This user may not open the NVIDIA devices."
		e.Hint = "Join the group that may read and write /dev/nvidia*."
	case codeNotLoaded:
		e.Message = "The NVIDIA driver is installed but not loaded into the kernel."
		e.Hint = "Restart the computer. With Secure Boot, the driver's module must be signed."
	case codeMismatch:
		e.Message = "The NVIDIA driver was updated while it was running: its library and its kernel module are of " +
			"different versions."
		e.Hint = "Restart the computer."
	default:
		e.Message = "The NVIDIA driver failed: " + loss{Call: f.Call, Code: f.Code}.reason(nil) + "."
		e.Hint = tryNvidiaSMI
	}
	return e
}

func span(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
