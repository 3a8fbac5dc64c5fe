//go:build linux && cgo

package nvml

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Built says whether this program can be the child: it was built with C linkage on Linux.
const Built = true

const defaultLibrary = "libnvidia-ml.so.1"

// library is the driver's library, loaded by the first request.
type library struct {
	path  string
	box   blackBox
	file  *dl.DynamicLibrary // kept open beside go-nvml's own handle, to look symbols up before Init
	nvml  lib.Interface
	omit  []omission
	lost  []loss
	fault *fault // why the library as a whole is of no use
	ended map[string]map[uint32]endedInfo

	performance map[place]performance // of the GPU instances that were read
}

// openDriver returns the driver's library at path, or at the usual place. Each call is noted in box, which may be nil,
// first.
func openDriver(path string, box *os.File) driver {
	return &library{path: cmp.Or(path, defaultLibrary), box: blackBox{file: box},
		ended: map[string]map[uint32]endedInfo{}, performance: map[place]performance{}}
}

// open loads and initializes the library once. If that fails it stays loaded, so the parent starts another process.
func (l *library) open() *fault {
	if l.nvml != nil {
		return nil
	}
	file := dl.New(l.path, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	l.box.enter("dlopen", "")
	if err := file.Open(); err != nil {
		return &fault{Code: codeNoFile, Text: err.Error()}
	}
	l.file = file
	nvml := lib.New(lib.WithLibraryPath(l.path))
	if code := l.call("nvmlInit", "", nvml.Init); code != 0 {
		return &fault{Call: "nvmlInit", Code: code}
	}
	l.nvml = nvml
	return nil
}

func (l *library) begin(omit []omission) *fault {
	l.omit, l.lost, l.fault = omit, nil, nil
	return l.open()
}

// symbols are the versions of a function that go-nvml may use, if there is more than its plain name.
var symbols = map[string][]string{
	"nvmlInit":                   {"nvmlInit_v2", "nvmlInit"},
	"nvmlDeviceGetCount":         {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"},
	"nvmlDeviceGetHandleByIndex": {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"},
	"nvmlDeviceGetPciInfo":       {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"},
	"nvmlDeviceGetComputeRunningProcesses": {"nvmlDeviceGetComputeRunningProcesses_v3",
		"nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses"},
	"nvmlDeviceGetGraphicsRunningProcesses": {"nvmlDeviceGetGraphicsRunningProcesses_v3",
		"nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses"},
	"nvmlDeviceGetMPSComputeRunningProcesses": {"nvmlDeviceGetMPSComputeRunningProcesses_v3",
		"nvmlDeviceGetMPSComputeRunningProcesses_v2", "nvmlDeviceGetMPSComputeRunningProcesses"},
}

func (l *library) has(call string) bool {
	names, ok := symbols[call]
	if !ok {
		names = []string{call}
	}
	return slices.ContainsFunc(names, func(name string) bool { return l.file.Lookup(name) == nil })
}

// call makes one call unless the library lacks it, which would end the process, or the parent omits it. It returns the
// library's code or one of ours. What go-nvml panics on, such as a list that grew between its two looks, is tried three
// times.
func (l *library) call(name, device string, do func() lib.Return) int {
	if slices.ContainsFunc(l.omit, func(o omission) bool {
		return (o.Device == "" || o.Device == device) && (o.Call == "" && o.Device != "" || o.Call == name)
	}) {
		return codeOmitted
	}
	if !l.has(name) {
		return codeMissing
	}
	for range 3 {
		l.box.enter(name, device)
		code, ok := guarded(do)
		if ok {
			l.box.leave()
			return code
		}
	}
	l.box.leave()
	return codePanicked
}

func guarded(do func() lib.Return) (code int, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return int(do()), true
}

// read is [library.call] for a call that returns a value.
func read[T any](l *library, name, device string, get func() (T, lib.Return)) (value T, code int) {
	code = l.call(name, device, func() (r lib.Return) {
		value, r = get()
		return r
	})
	return value, code
}

// askFor is [read] for a value whose failure is a loss.
func askFor[T any](l *library, name, device string, get func() (T, lib.Return)) (T, bool) {
	value, code := read(l, name, device, get)
	l.note(name, device, code)
	return value, code == 0
}

// note records a failed call as a loss, unless the device does not support it.
func (l *library) note(name, device string, code int) {
	switch lib.Return(code) {
	case lib.SUCCESS, lib.ERROR_NOT_SUPPORTED:
		return
	case lib.ERROR_UNINITIALIZED, lib.ERROR_DRIVER_NOT_LOADED, lib.ERROR_LIB_RM_VERSION_MISMATCH:
		l.fault = &fault{Call: name, Code: code} // the driver was taken away or replaced under us
	}
	l.lost = append(l.lost, loss{Device: device, Call: name, Code: code})
}

type device struct {
	lib.Device
	index int
	uuid  string
}

// devices lists the devices that respond, in the driver's order. Another one is a loss under "#" and its index.
func (l *library) devices() ([]device, *fault) {
	count, code := read(l, "nvmlDeviceGetCount", "", l.nvml.DeviceGetCount)
	if code != 0 {
		return nil, &fault{Call: "nvmlDeviceGetCount", Code: code}
	}
	var found []device
	for i := range count {
		place := fmt.Sprintf("#%d", i)
		handle, ok := askFor(l, "nvmlDeviceGetHandleByIndex", place,
			func() (lib.Device, lib.Return) { return l.nvml.DeviceGetHandleByIndex(i) })
		if !ok {
			continue
		}
		d := device{Device: handle, index: i}
		if d.uuid, ok = askFor(l, "nvmlDeviceGetUUID", place, d.GetUUID); !ok {
			continue
		}
		if slices.ContainsFunc(l.omit, func(o omission) bool { return o.Device == d.uuid && o.Call == "" }) {
			l.note("", d.uuid, codeOmitted)
			continue
		}
		found = append(found, d)
	}
	return found, l.fault
}

// instances lists the MIG instances of a device; ok is false when some may be missing.
func (l *library) instances(d device) (found []device, ok bool) {
	most, ok := askFor(l, "nvmlDeviceGetMaxMigDeviceCount", d.uuid, d.GetMaxMigDeviceCount)
	for i := range most {
		const call = "nvmlDeviceGetMigDeviceHandleByIndex"
		handle, code := read(l, call, d.uuid, func() (lib.Device, lib.Return) { return d.GetMigDeviceHandleByIndex(i) })
		if code == codeNotFound {
			continue // a place that no instance was made in
		}
		l.note(call, d.uuid, code)
		if code == codeMissing {
			return found, false
		}
		if code != 0 {
			ok = false
			continue
		}
		in := device{Device: handle, index: i}
		var named bool
		if in.uuid, named = askFor(l, "nvmlDeviceGetUUID", d.uuid, in.GetUUID); !named {
			ok = false
			continue
		}
		found = append(found, in)
	}
	return found, ok
}

func (l *library) migOn(d device) bool {
	on, code := l.migMode(d)
	if code != codeMissing {
		l.note("nvmlDeviceGetMigMode", d.uuid, code)
	}
	return code == 0 && on == lib.DEVICE_MIG_ENABLE
}

func (l *library) migMode(d device) (on, code int) {
	return read(l, "nvmlDeviceGetMigMode", d.uuid, func() (int, lib.Return) {
		current, _, r := d.GetMigMode()
		return current, r
	})
}

// field reads one of the driver's numbered values, if it is a whole number.
func (l *library) field(d device, id uint32) *uint64 {
	values := []lib.FieldValue{{FieldId: id}}
	code := l.call("nvmlDeviceGetFieldValues", d.uuid, func() lib.Return { return d.GetFieldValues(values) })
	if code != 0 || values[0].NvmlReturn != 0 {
		return nil
	}
	var value uint64
	switch lib.ValueType(values[0].ValueType) {
	case lib.VALUE_TYPE_UNSIGNED_INT:
		value = uint64(binary.NativeEndian.Uint32(values[0].Value[:]))
	case lib.VALUE_TYPE_UNSIGNED_LONG, lib.VALUE_TYPE_UNSIGNED_LONG_LONG:
		value = binary.NativeEndian.Uint64(values[0].Value[:])
	default:
		return nil
	}
	return &value
}
