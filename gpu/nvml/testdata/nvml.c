/* A libnvidia-ml.so.1 without a driver, for tests. Its state is the text file
 * named by SLIPWAY_NVML_STATE, read anew at every call:
 *
 *   gpu uuid=GPU-0 name=NVIDIA_Test pci=00000000:01:00.0 total=.. used=.. reserved=..
 *       util=.. power=.. energy=.. temp=.. mig=0 acct=0 cc=80
 *   mig gpu=0 uuid=MIG-0 gi=1 name=NVIDIA_Test_MIG_1g.10gb total=.. used=..
 *       worked=.. passed=.. [metric=3] [percent=..]   monitoring (gpm=1 on the gpu's line): counters of time with
 *       work and of all time; metric: what the value answers instead; percent: the value itself
 *   proc gpu=0 pid=7 mem=.. kind=C|G|M [mig=0]
 *   row gpu=0 pid=7 at=.. sm=.. [raw=1]        process utilisation; raw: whatever was asked for
 *   sample gpu=0 at=.. value=..                device utilisation
 *   ended gpu=0 pid=7 start=.. time=.. util=.. mem=.. [running=1]   a record of accounting mode
 *   code call=nvmlX [gpu=0] value=3            the call answers that
 *   hang call=nvmlX [gpu=0]                    the call never answers
 *   slow call=nvmlX value=50                   the call takes so many milliseconds
 *   crash call=nvmlX [gpu=0]                   the call writes where it may not
 *   abort call=nvmlX                           the call ends the process
 *   grow call=nvmlX value=2                    so many rows more at the second look
 *   driver value=580.105.08
 *
 * Built with -DWITHOUT_nvmlX it lacks that symbol. A _ in a name stands for a
 * space, and an amount of 18446744073709551615 for "not available".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned int uint;
typedef unsigned long long u64;
enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, UNSUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7 };
enum { MAXLINES = 4096, LINE = 512, MAXGPUS = 16, MAXMIG = 8 };

struct handle { int gpu, mig; };
typedef struct handle *device;

static char lines[MAXLINES][LINE];
static int count;
static struct handle handles[MAXGPUS][MAXMIG + 1];
static int started;

static void load(void) {
	const char *path = getenv("SLIPWAY_NVML_STATE");
	FILE *f = path ? fopen(path, "r") : NULL;
	count = 0;
	if (!f) return;
	while (count < MAXLINES && fgets(lines[count], LINE, f)) {
		lines[count][strcspn(lines[count], "\n")] = 0;
		if (lines[count][0]) count++;
	}
	fclose(f);
}

static int is(const char *line, const char *kind) {
	size_t n = strlen(kind);
	return strncmp(line, kind, n) == 0 && line[n] == ' ';
}

/* text copies the value of a key; it answers whether there is one. */
static int text(const char *line, const char *key, char *out, size_t size) {
	char want[64];
	snprintf(want, sizeof want, " %s=", key);
	const char *at = strstr(line, want);
	if (!at) return 0;
	at += strlen(want);
	size_t n = strcspn(at, " ");
	if (n >= size) n = size - 1;
	memcpy(out, at, n);
	out[n] = 0;
	return 1;
}

static u64 number(const char *line, const char *key, u64 otherwise) {
	char value[64];
	return text(line, key, value, sizeof value) ? strtoull(value, NULL, 10) : otherwise;
}

static void spaced(char *s) {
	for (; *s; s++) if (*s == '_') *s = ' ';
}

/* nth finds the nth line of a kind, of one gpu unless gpu is -1. */
static const char *nth(const char *kind, int gpu, int n) {
	for (int i = 0; i < count; i++)
		if (is(lines[i], kind) && (gpu < 0 || (int)number(lines[i], "gpu", 0) == gpu) && n-- == 0) return lines[i];
	return NULL;
}

static const char *order(const char *kind, const char *call, int gpu) {
	char named[128];
	for (int i = 0; i < count; i++) {
		if (!is(lines[i], kind) || !text(lines[i], "call", named, sizeof named) || strcmp(named, call)) continue;
		u64 only = number(lines[i], "gpu", (u64)-1);
		if (only == (u64)-1 || (int)only == gpu) return lines[i];
	}
	return NULL;
}

/* enter does what the state orders for a call; it answers -1 when the call
 * should go on. */
static int enter(const char *call, int gpu) {
	const char *line;
	load();
	if (order("hang", call, gpu)) for (;;) pause();
	if ((line = order("slow", call, gpu))) usleep(1000 * number(line, "value", 0));
	if (order("crash", call, gpu)) *(volatile int *)8 = 1;
	if (order("abort", call, gpu)) abort();
	if ((line = order("code", call, gpu))) return (int)number(line, "value", 999);
	if (!started && strncmp(call, "nvmlInit", 8)) return UNINITIALIZED;
	return -1;
}

#define ENTER(name, gpu) do { int r = enter(#name, gpu); if (r >= 0) return r; } while (0)
#define SELF(d) ((d)->mig >= 0 ? nth("mig", (d)->gpu, (d)->mig) : nth("gpu", -1, (d)->gpu))
/* AMOUNT sets *out to a number of the device's line, or is not supported. */
#define AMOUNT(d, key, out) do { \
	const char *l = SELF(d); char v[64]; \
	if (!l) return INVALID; \
	if (!text(l, key, v, sizeof v)) return UNSUPPORTED; \
	*(out) = strtoull(v, NULL, 10); return OK; } while (0)

#ifndef WITHOUT_nvmlInit_v2
int nvmlInit_v2(void) { ENTER(nvmlInit_v2, -1); started = 1; return OK; }
#endif
#ifndef WITHOUT_nvmlShutdown
int nvmlShutdown(void) { ENTER(nvmlShutdown, -1); started = 0; return OK; }
#endif
#ifndef WITHOUT_nvmlErrorString
const char *nvmlErrorString(int code) { (void)code; return "an error"; }
#endif
#ifndef WITHOUT_nvmlSystemGetDriverVersion
int nvmlSystemGetDriverVersion(char *out, uint size) {
	ENTER(nvmlSystemGetDriverVersion, -1);
	const char *l = nth("driver", -1, 0);
	if (!l || !text(l, "value", out, size)) snprintf(out, size, "580.105.08");
	return OK;
}
#endif
#ifndef WITHOUT_nvmlDeviceGetCount_v2
int nvmlDeviceGetCount_v2(uint *n) {
	ENTER(nvmlDeviceGetCount_v2, -1);
	for (*n = 0; nth("gpu", -1, *n); ++*n) { }
	return OK;
}
#endif
#ifndef WITHOUT_nvmlDeviceGetHandleByIndex_v2
int nvmlDeviceGetHandleByIndex_v2(uint i, device *d) {
	ENTER(nvmlDeviceGetHandleByIndex_v2, (int)i);
	if (i >= MAXGPUS || !nth("gpu", -1, i)) return INVALID;
	handles[i][0] = (struct handle){ .gpu = i, .mig = -1 };
	*d = &handles[i][0];
	return OK;
}
#endif

static int named(device d, const char *key, char *out, uint size) {
	const char *l = SELF(d);
	if (!l) return INVALID;
	return text(l, key, out, size) ? OK : UNSUPPORTED;
}
#ifndef WITHOUT_nvmlDeviceGetUUID
int nvmlDeviceGetUUID(device d, char *out, uint size) { ENTER(nvmlDeviceGetUUID, d->gpu); return named(d, "uuid", out, size); }
#endif
#ifndef WITHOUT_nvmlDeviceGetName
int nvmlDeviceGetName(device d, char *out, uint size) {
	ENTER(nvmlDeviceGetName, d->gpu);
	int r = named(d, "name", out, size);
	if (r == OK) spaced(out);
	return r;
}
#endif

struct pci { char legacy[16]; uint domain, bus, device, id, subsystem; char bus_id[32]; };
#ifndef WITHOUT_nvmlDeviceGetPciInfo_v3
int nvmlDeviceGetPciInfo_v3(device d, struct pci *out) {
	ENTER(nvmlDeviceGetPciInfo_v3, d->gpu);
	memset(out, 0, sizeof *out);
	return named(d, "pci", out->bus_id, sizeof out->bus_id);
}
#endif

struct memory { u64 total, free, used; };
struct memory2 { uint version; u64 total, reserved, free, used; };
static int memory(device d, struct memory2 *m) {
	const char *l = SELF(d);
	if (!l) return INVALID;
	m->total = number(l, "total", 0);
	m->reserved = number(l, "reserved", 0);
	m->used = number(l, "used", 0);
	m->free = m->total - m->reserved - m->used;
	return m->total ? OK : UNSUPPORTED;
}
#ifndef WITHOUT_nvmlDeviceGetMemoryInfo
int nvmlDeviceGetMemoryInfo(device d, struct memory *out) {
	ENTER(nvmlDeviceGetMemoryInfo, d->gpu);
	struct memory2 m;
	int r = memory(d, &m);
	*out = (struct memory){ m.total, m.free, m.used + m.reserved };
	return r;
}
#endif
#ifndef WITHOUT_nvmlDeviceGetMemoryInfo_v2
int nvmlDeviceGetMemoryInfo_v2(device d, struct memory2 *out) {
	ENTER(nvmlDeviceGetMemoryInfo_v2, d->gpu);
	if (out->version != (sizeof *out | 2 << 24)) return 25;
	return memory(d, out);
}
#endif

struct rates { uint gpu, memory; };
#ifndef WITHOUT_nvmlDeviceGetUtilizationRates
int nvmlDeviceGetUtilizationRates(device d, struct rates *out) {
	ENTER(nvmlDeviceGetUtilizationRates, d->gpu);
	out->memory = 0;
	AMOUNT(d, "util", &out->gpu);
}
#endif

struct sample { u64 at, value; };
#ifndef WITHOUT_nvmlDeviceGetSamples
int nvmlDeviceGetSamples(device d, int kind, u64 last, int *type, uint *n, struct sample *out) {
	ENTER(nvmlDeviceGetSamples, d->gpu);
	uint found = 0;
	const char *l;
	if (kind != 1) return UNSUPPORTED;
	for (int i = 0; (l = nth("sample", d->gpu, i)); i++) {
		if (number(l, "at", 0) <= last) continue;
		if (out && found < *n) out[found] = (struct sample){ number(l, "at", 0), number(l, "value", 0) };
		found++;
	}
	*type = 1;
	if (!found) return NOT_FOUND;
	*n = found;
	return OK;
}
#endif

struct row { uint pid; u64 at; uint sm, mem, enc, dec; };
#ifndef WITHOUT_nvmlDeviceGetProcessUtilization
int nvmlDeviceGetProcessUtilization(device d, struct row *out, uint *n, u64 last) {
	ENTER(nvmlDeviceGetProcessUtilization, d->gpu);
	uint found = 0;
	const char *l;
	if (number(SELF(d), "mig", 0)) return UNSUPPORTED;
	for (int i = 0; (l = nth("row", d->gpu, i)); i++) {
		if (number(l, "at", 0) <= last && !number(l, "raw", 0)) continue;
		if (out && found < *n) out[found] = (struct row){ number(l, "pid", 0), number(l, "at", 0), number(l, "sm", 0), 0, 0, 0 };
		found++;
	}
	if (out && (l = order("grow", "nvmlDeviceGetProcessUtilization", d->gpu))) found += number(l, "value", 1);
	if (!found) return NOT_FOUND;
	int fits = out && *n >= found;
	*n = found;
	return fits ? OK : TOO_SMALL;
}
#endif

struct process { uint pid; u64 memory; uint gi, ci; };
static int processes(device d, char kind, uint *n, struct process *out) {
	uint found = 0;
	const char *l;
	for (int i = 0; (l = nth("proc", d->gpu, i)); i++) {
		char k[8] = "C";
		text(l, "kind", k, sizeof k);
		if (!strchr(k, kind) || (d->mig >= 0 && (int)number(l, "mig", -1) != d->mig)) continue;
		if (found < *n) out[found] = (struct process){ number(l, "pid", 0), number(l, "mem", 0), 0, 0 };
		found++;
	}
	int fits = found <= *n;
	*n = found;
	return fits ? OK : TOO_SMALL;
}
#ifndef WITHOUT_nvmlDeviceGetComputeRunningProcesses_v3
int nvmlDeviceGetComputeRunningProcesses_v3(device d, uint *n, struct process *out) {
	ENTER(nvmlDeviceGetComputeRunningProcesses_v3, d->gpu);
	return processes(d, 'C', n, out);
}
#endif
#ifndef WITHOUT_nvmlDeviceGetGraphicsRunningProcesses_v3
int nvmlDeviceGetGraphicsRunningProcesses_v3(device d, uint *n, struct process *out) {
	ENTER(nvmlDeviceGetGraphicsRunningProcesses_v3, d->gpu);
	return processes(d, 'G', n, out);
}
#endif
#ifndef WITHOUT_nvmlDeviceGetMPSComputeRunningProcesses_v3
int nvmlDeviceGetMPSComputeRunningProcesses_v3(device d, uint *n, struct process *out) {
	ENTER(nvmlDeviceGetMPSComputeRunningProcesses_v3, d->gpu);
	return processes(d, 'M', n, out);
}
#endif

#ifndef WITHOUT_nvmlDeviceGetPowerUsage
int nvmlDeviceGetPowerUsage(device d, uint *out) { ENTER(nvmlDeviceGetPowerUsage, d->gpu); AMOUNT(d, "power", out); }
#endif
#ifndef WITHOUT_nvmlDeviceGetTotalEnergyConsumption
int nvmlDeviceGetTotalEnergyConsumption(device d, u64 *out) { ENTER(nvmlDeviceGetTotalEnergyConsumption, d->gpu); AMOUNT(d, "energy", out); }
#endif
#ifndef WITHOUT_nvmlDeviceGetTemperature
int nvmlDeviceGetTemperature(device d, int sensor, uint *out) { ENTER(nvmlDeviceGetTemperature, d->gpu); (void)sensor; AMOUNT(d, "temp", out); }
#endif

struct field { uint id, scope; long long at, latency; uint type; int code; union { double d; uint ui; u64 ull; } value; };
#ifndef WITHOUT_nvmlDeviceGetFieldValues
int nvmlDeviceGetFieldValues(device d, int n, struct field *fields) {
	ENTER(nvmlDeviceGetFieldValues, d->gpu);
	for (int i = 0; i < n; i++) {
		const char *key = fields[i].id == 185 ? "power_average" : fields[i].id == 186 ? "power_instant" : fields[i].id == 83 ? "energy_field" : "nothing";
		char v[64];
		fields[i].code = text(SELF(d), key, v, sizeof v) ? OK : UNSUPPORTED;
		fields[i].type = fields[i].id == 83 ? 3 : 1;
		if (fields[i].code == OK) fields[i].value.ull = strtoull(v, NULL, 10);
	}
	return OK;
}
#endif

#ifndef WITHOUT_nvmlDeviceGetMigMode
int nvmlDeviceGetMigMode(device d, uint *now, uint *later) {
	ENTER(nvmlDeviceGetMigMode, d->gpu);
	*later = number(SELF(d), "mig", 0);
	AMOUNT(d, "mig", now);
}
#endif
#ifndef WITHOUT_nvmlDeviceGetMaxMigDeviceCount
int nvmlDeviceGetMaxMigDeviceCount(device d, uint *n) { ENTER(nvmlDeviceGetMaxMigDeviceCount, d->gpu); *n = MAXMIG - 1; return OK; }
#endif
#ifndef WITHOUT_nvmlDeviceGetMigDeviceHandleByIndex
int nvmlDeviceGetMigDeviceHandleByIndex(device d, uint i, device *out) {
	ENTER(nvmlDeviceGetMigDeviceHandleByIndex, d->gpu);
	if (i >= MAXMIG || !nth("mig", d->gpu, i)) return NOT_FOUND;
	handles[d->gpu][i + 1] = (struct handle){ .gpu = d->gpu, .mig = i };
	*out = &handles[d->gpu][i + 1];
	return OK;
}
#endif
#ifndef WITHOUT_nvmlDeviceGetGpuInstanceId
int nvmlDeviceGetGpuInstanceId(device d, uint *id) { ENTER(nvmlDeviceGetGpuInstanceId, d->gpu); AMOUNT(d, "gi", id); }
#endif

/* A sample is the line of its instance as it was. */
struct performance { char line[LINE]; };
struct metric { uint id; int code; double value; char *names[3]; };
struct metrics { uint version, count; struct performance *before, *after; struct metric list[]; };
struct support { uint version, supported; };
static int samples;
#ifndef WITHOUT_nvmlGpmQueryDeviceSupport
int nvmlGpmQueryDeviceSupport(device d, struct support *out) {
	ENTER(nvmlGpmQueryDeviceSupport, d->gpu);
	if (out->version != 1) return 25;
	out->supported = number(SELF(d), "gpm", 0);
	return OK;
}
#endif
#ifndef WITHOUT_nvmlGpmSampleAlloc
int nvmlGpmSampleAlloc(struct performance **out) {
	ENTER(nvmlGpmSampleAlloc, -1);
	if (samples >= 32) return 20; /* whoever frees none runs out of them */
	samples++;
	*out = calloc(1, sizeof **out);
	return *out ? OK : 20;
}
#endif
#ifndef WITHOUT_nvmlGpmSampleFree
int nvmlGpmSampleFree(struct performance *s) { ENTER(nvmlGpmSampleFree, -1); samples--; free(s); return OK; }
#endif
#ifndef WITHOUT_nvmlGpmMigSampleGet
int nvmlGpmMigSampleGet(device d, uint gi, struct performance *out) {
	ENTER(nvmlGpmMigSampleGet, d->gpu);
	const char *l;
	for (int i = 0; (l = nth("mig", d->gpu, i)); i++) {
		if (number(l, "gi", 0) != gi) continue;
		snprintf(out->line, sizeof out->line, "%s", l);
		return OK;
	}
	return INVALID;
}
#endif
#ifndef WITHOUT_nvmlGpmMetricsGet
int nvmlGpmMetricsGet(struct metrics *m) {
	ENTER(nvmlGpmMetricsGet, -1);
	if (m->version != 1 || m->count != 1 || m->list[0].id != 1) return INVALID;
	const char *a = m->before->line, *b = m->after->line;
	char value[64];
	double passed = (double)number(b, "passed", 0) - (double)number(a, "passed", 0);
	m->list[0].code = number(b, "metric", OK);
	m->list[0].value = 100 * ((double)number(b, "worked", 0) - (double)number(a, "worked", 0)) / passed;
	if (text(b, "percent", value, sizeof value)) m->list[0].value = strtod(value, NULL);
	return OK;
}
#endif
#ifndef WITHOUT_nvmlDeviceGetAccountingMode
int nvmlDeviceGetAccountingMode(device d, uint *on) { ENTER(nvmlDeviceGetAccountingMode, d->gpu); AMOUNT(d, "acct", on); }
#endif
#ifndef WITHOUT_nvmlDeviceGetAccountingPids
int nvmlDeviceGetAccountingPids(device d, uint *n, uint *pids) {
	ENTER(nvmlDeviceGetAccountingPids, d->gpu);
	uint found = 0;
	const char *l;
	for (int i = 0; (l = nth("ended", d->gpu, i)); i++) {
		if (found < *n) pids[found] = number(l, "pid", 0);
		found++;
	}
	int fits = found <= *n;
	*n = found;
	return fits ? OK : TOO_SMALL;
}
#endif
struct record { uint util, memory_util; u64 memory, time, start; uint running, reserved[5]; };
#ifndef WITHOUT_nvmlDeviceGetAccountingStats
int nvmlDeviceGetAccountingStats(device d, uint pid, struct record *out) {
	ENTER(nvmlDeviceGetAccountingStats, d->gpu);
	const char *l;
	for (int i = 0; (l = nth("ended", d->gpu, i)); i++) {
		if ((uint)number(l, "pid", 0) != pid) continue;
		*out = (struct record){ .util = number(l, "util", 0), .memory = number(l, "mem", 0), .time = number(l, "time", 0), .start = number(l, "start", 0), .running = number(l, "running", 0) };
		return OK;
	}
	return NOT_FOUND;
}
#endif
#ifndef WITHOUT_nvmlDeviceGetCudaComputeCapability
int nvmlDeviceGetCudaComputeCapability(device d, int *major, int *minor) {
	ENTER(nvmlDeviceGetCudaComputeCapability, d->gpu);
	u64 cc = number(SELF(d), "cc", 80);
	*major = cc / 10;
	*minor = cc % 10;
	return OK;
}
#endif
struct limits { char *group; u64 soft, hard, used; };
#ifndef WITHOUT_nvmlDeviceGetMemoryLimits_v1
int nvmlDeviceGetMemoryLimits_v1(device d, struct limits *out) {
	ENTER(nvmlDeviceGetMemoryLimits_v1, d->gpu);
	AMOUNT(d, "limit", &out->hard);
}
#endif
#ifndef WITHOUT_nvmlDeviceGetEnforcedPowerLimit
int nvmlDeviceGetEnforcedPowerLimit(device d, uint *out) { ENTER(nvmlDeviceGetEnforcedPowerLimit, d->gpu); AMOUNT(d, "limit_power", out); }
#endif
