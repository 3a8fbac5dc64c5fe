//go:build linux && cgo

package nvml

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Built says whether this program can be the child: it was built with C
// linkage on Linux.
const Built = true

const defaultLibrary = "libnvidia-ml.so.1"

// library is the driver's library, loaded by the first request and kept.
type library struct {
	opts  Options
	box   blackBox
	file  *dl.DynamicLibrary // kept open beside go-nvml's own handle, to look symbols up before Init
	nvml  lib.Interface
	omit  []omission
	lost  []loss
	fault *fault // why the library as a whole is of no use
	ended map[string]map[uint32]endedInfo

	performance map[place]performance // of the GPU instances that were read
}

func openDriver(opts Options) driver {
	if opts.Library == "" {
		opts.Library = defaultLibrary
	}
	return &library{opts: opts, box: blackBox{file: opts.Box}, ended: map[string]map[uint32]endedInfo{},
		performance: map[place]performance{}}
}

// open loads and initialises the library once. A library that failed stays
// loaded in this process, so the parent starts another one.
func (l *library) open() *fault {
	if l.nvml != nil {
		return nil
	}
	file := dl.New(l.opts.Library, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	l.box.enter("dlopen", "")
	if err := file.Open(); err != nil {
		return &fault{Code: codeNoFile, Text: err.Error()}
	}
	l.file = file
	nvml := lib.New(lib.WithLibraryPath(l.opts.Library))
	if code := l.call("nvmlInit", "", nvml.Init); code != 0 {
		return &fault{Call: "nvmlInit", Code: code}
	}
	l.nvml = nvml
	return nil
}

// begin prepares for one request.
func (l *library) begin(omit []omission) *fault {
	l.omit, l.lost, l.fault = omit, nil, nil
	return l.open()
}

// symbols are the versions of a function that go-nvml may use, when there is
// more than its plain name.
var symbols = map[string][]string{
	"nvmlInit":                   {"nvmlInit_v2", "nvmlInit"},
	"nvmlDeviceGetCount":         {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"},
	"nvmlDeviceGetHandleByIndex": {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"},
	"nvmlDeviceGetPciInfo": {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2",
		"nvmlDeviceGetPciInfo"},
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

// call makes one call unless the library lacks it, which would end the process,
// or the parent wants it left out. It answers the library's code or one of ours.
// What go-nvml panics on, such as a list that grew between its two looks, is
// tried again twice.
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

// ask makes a call whose failure is a loss, and reports whether it succeeded.
// That a device does not support something is its nature and no loss.
func (l *library) ask(name, device string, do func() lib.Return) bool {
	code := l.call(name, device, do)
	l.note(name, device, code)
	return code == 0
}

func (l *library) note(name, device string, code int) {
	switch lib.Return(code) {
	case lib.SUCCESS, lib.ERROR_NOT_SUPPORTED:
		return
	case lib.ERROR_UNINITIALIZED, lib.ERROR_DRIVER_NOT_LOADED, lib.ERROR_LIB_RM_VERSION_MISMATCH:
		l.fault = &fault{Call: name, Code: code} // the driver was taken away or replaced under us
	}
	l.lost = append(l.lost, loss{Device: device, Call: name, Code: code})
}

// device is one handle and its name.
type device struct {
	lib.Device
	index int
	uuid  string
}

// devices lists the devices that answer, in the driver's order. One that does
// not is a loss under "#" and its index.
func (l *library) devices() ([]device, *fault) {
	count := 0
	code := l.call("nvmlDeviceGetCount", "", func() (r lib.Return) {
		count, r = l.nvml.DeviceGetCount()
		return r
	})
	if code != 0 {
		return nil, &fault{Call: "nvmlDeviceGetCount", Code: code}
	}
	var found []device
	for i := range count {
		d := device{index: i}
		place := fmt.Sprintf("#%d", i)
		if !l.ask("nvmlDeviceGetHandleByIndex", place, func() (r lib.Return) {
			d.Device, r = l.nvml.DeviceGetHandleByIndex(i)
			return r
		}) || !l.ask("nvmlDeviceGetUUID", place, func() (r lib.Return) {
			d.uuid, r = d.GetUUID()
			return r
		}) {
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

// instances lists the MIG instances of a device; ok is false when the list may
// lack some.
func (l *library) instances(d device) (found []device, ok bool) {
	most := 0
	if !l.ask("nvmlDeviceGetMaxMigDeviceCount", d.uuid, func() (r lib.Return) {
		most, r = d.GetMaxMigDeviceCount()
		return r
	}) {
		return nil, false
	}
	ok = true
	for i := range most {
		in := device{index: i}
		code := l.call("nvmlDeviceGetMigDeviceHandleByIndex", d.uuid, func() (r lib.Return) {
			in.Device, r = d.GetMigDeviceHandleByIndex(i)
			return r
		})
		if code == int(lib.ERROR_NOT_FOUND) {
			continue // a place that no instance was made in
		}
		l.note("nvmlDeviceGetMigDeviceHandleByIndex", d.uuid, code)
		if code != 0 || !l.ask("nvmlDeviceGetUUID", d.uuid, func() (r lib.Return) {
			in.uuid, r = in.GetUUID()
			return r
		}) {
			ok = false
			if code == codeMissing {
				break
			}
			continue
		}
		found = append(found, in)
	}
	return found, ok
}

// migOn reports whether a device is divided; a library or card that does not
// know of MIG is not.
func (l *library) migOn(d device) bool {
	on := 0
	code := l.call("nvmlDeviceGetMigMode", d.uuid, func() (r lib.Return) {
		on, _, r = d.GetMigMode()
		return r
	})
	if code != codeMissing {
		l.note("nvmlDeviceGetMigMode", d.uuid, code)
	}
	return code == 0 && on == lib.DEVICE_MIG_ENABLE
}

func (l *library) driverVersion() (version string) {
	l.ask("nvmlSystemGetDriverVersion", "", func() (r lib.Return) {
		version, r = l.nvml.SystemGetDriverVersion()
		return r
	})
	return version
}

// field reads one of the driver's numbered values that is a whole number.
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
