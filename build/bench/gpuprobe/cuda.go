//go:build linux && cgo

package main

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The few functions of CUDA's driver that a load needs, declared here and found when it runs, so that this program
// builds without CUDA.
typedef struct { unsigned char bytes[16]; } uuid_bytes;

static struct {
	int (*init)(unsigned);
	int (*count)(int *);
	int (*get)(int *, int);
	int (*uuid)(uuid_bytes *, int);
	int (*context)(void **, unsigned, int);
	int (*load)(void **, const void *);
	int (*function)(void **, void *, const char *);
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		void *, void **, void **);
	int (*event)(void **, unsigned);
	int (*record)(void *, void *);
	int (*wait)(void *);
	int (*elapsed)(float *, void *, void *);
	int (*alloc)(unsigned long long *, size_t);
} cu;
static void *kernel, *from, *upto;

// The kernel spins until so many nanoseconds have passed.
static const char *ptx =
	".version 6.0\n.target sm_50\n.address_size 64\n"
	".visible .entry spin(.param .u64 ns) {\n"
	"  .reg .pred %p;\n  .reg .u64 %n, %start, %now, %d;\n"
	"  ld.param.u64 %n, [ns];\n  mov.u64 %start, %globaltimer;\n"
	"again:\n  mov.u64 %now, %globaltimer;\n  sub.u64 %d, %now, %start;\n"
	"  setp.lt.u64 %p, %d, %n;\n  @%p bra again;\n  ret;\n}\n";

// The names of the functions of cu, in order.
static const char *names[] = {
	"cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetUuid", "cuCtxCreate_v2", "cuModuleLoadData",
	"cuModuleGetFunction", "cuLaunchKernel", "cuEventCreate", "cuEventRecord", "cuEventSynchronize",
	"cuEventElapsedTime", "cuMemAlloc_v2",
};

// cuda_open prepares a load on the device with a UUID. It answers 0, CUDA's code, or -1 with what is missing.
static int cuda_open(const char *wanted, const char **missing) {
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	int n = 0, r;
	*missing = "libcuda.so.1";
	if (!lib) return -1;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!(((void **)&cu)[i] = dlsym(lib, *missing = names[i]))) return -1;
	if ((r = cu.init(0)) || (r = cu.count(&n))) return r;
	*missing = "the device among those of CUDA";
	for (int i = 0; i < n; i++) {
		int device;
		uuid_bytes u;
		char text[41] = "GPU-";
		if ((r = cu.get(&device, i)) || (r = cu.uuid(&u, device))) return r;
		for (int at = 4, b = 0; b < 16; b++) {
			if (b == 4 || b == 6 || b == 8 || b == 10) text[at++] = '-';
			at += sprintf(text + at, "%02x", u.bytes[b]);
		}
		if (strcmp(text, wanted)) continue;
		void *context, *module;
		// Waiting blocks instead of spinning, so that the load costs no processor.
		if ((r = cu.context(&context, 4, device)) || (r = cu.load(&module, ptx)) ||
		(r = cu.function(&kernel, module, "spin"))) return r;
		if ((r = cu.event(&from, 1)) || (r = cu.event(&upto, 1))) return r;
		return 0;
	}
	return -1;
}

// cuda_spin runs the kernel once and tells how long it ran by CUDA's events.
static int cuda_spin(unsigned long long ns, float *ms) {
	void *args[] = { &ns };
	int r;
	if ((r = cu.record(from, NULL)) || (r = cu.launch(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL)) ||
		(r = cu.record(upto, NULL)) || (r = cu.wait(upto))) return r;
	return cu.elapsed(ms, from, upto);
}

static int cuda_take(size_t bytes) {
	unsigned long long where;
	return cu.alloc(&where, bytes);
}
*/
import "C"

import (
	"fmt"
	"time"
	"unsafe"
)

func openCUDA(uuid string) error {
	wanted := C.CString(uuid)
	defer C.free(unsafe.Pointer(wanted))
	var missing *C.char
	switch code := C.cuda_open(wanted, &missing); code {
	case 0:
		return nil
	case -1:
		return fmt.Errorf("%s is missing", C.GoString(missing))
	default:
		return fmt.Errorf("CUDA answered %d", code)
	}
}

// spin keeps the device busy and returns for how long by CUDA's events.
func spin(d time.Duration) (time.Duration, error) {
	var ms C.float
	if code := C.cuda_spin(C.ulonglong(d), &ms); code != 0 {
		return 0, fmt.Errorf("CUDA answered %d", code)
	}
	return time.Duration(float64(ms) * float64(time.Millisecond)), nil
}

// take allocates memory of the device until the process ends.
func take(bytes int64) error {
	if code := C.cuda_take(C.size_t(bytes)); code != 0 {
		return fmt.Errorf("CUDA answered %d", code)
	}
	return nil
}
