/* A stand-in for libnvidia-ml.so.1 that replays a trace, for tests on machines without a GPU.
 *
 * FAKE_NVML_TRACE names a text file of lines "t_s|device|key|value". A key holds its value from t_s
 * until its next line, and the last one for ever; "period_s" makes the trace repeat. Devices are "0",
 * "1", ...; "0:2" is MIG instance 2 of device 0; "*" is the machine. Keys are the slots of a profile, in
 * their units, and what scenario.py documents. A key that a device lacks is "not supported" by it, so a
 * scenario says what a device offers by what it states. "error.FUNCTION" is the code that a function
 * returns, "error.*" that of every function of a device; 0 ends it.
 *
 * Time stands at 0 until utilisation, power or clock are first asked for, so that what a process does
 * before it measures takes no part of the trace. Then it runs `speed` times as fast as real time; counters
 * count rate times real seconds, so that their rates are the trace's. FAKE_NVML_CLOCK names a file that
 * holds the trace time instead, for tests that step.
 *
 * Names and layouts follow NVIDIA's public API reference (docs.nvidia.com/deploy/nvml-api); the text is ours.
 */
#include <dirent.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };
enum { HANGS = -1, CRASHES = -2 }; /* as the "code" of an error: the call does not return, the process ends */
enum { MOST_DEVICES = 128, MOST_KEYS = 96, MOST_PROCESSES = 64 };
#define GIB 1073741824.0
#define MIB 1048576.0
#define UNKNOWN_SIZE 0xFFFFFFFFFFFFFFFFull

typedef unsigned int u32;
typedef unsigned long long u64;

typedef struct { u64 total, free, used; } Memory;
typedef struct { u32 version; u64 total, reserved, free, used; } MemoryV2;
typedef struct { u32 gpu, memory; } Utilization;
typedef struct { u32 version, supported; } GpmSupport;
typedef struct { char key[64]; int n; double *t, *v, *area; char **text; } Series;
typedef struct { char name[32]; int n; Series series[MOST_KEYS]; } Device;
typedef struct { Device *device; double at; double area[16]; } Sample;
typedef struct { u32 pid; u64 bytes; u32 gpu_instance, compute_instance; } Process;
typedef struct { u32 pid; u64 stamp; u32 sm, memory, encoder, decoder; } Utilized;
typedef struct { u32 id, scope; int64_t stamp, latency; u32 type, code; union { u64 wide; u32 narrow; double real; } value; } Field;
typedef struct { u32 id, code; double value; const char *names[3]; } Metric;
typedef struct { u32 version, n; Sample *first, *second; Metric metrics[]; } Metrics;

static Device devices[MOST_DEVICES];
static int device_count, opened;
static double epoch = -1, speed = 1, period;
static const char *clock_file;

/* ---- the trace ---- */

static Device *device_named(const char *name, int make) {
  for (int i = 0; i < device_count; i++)
    if (!strcmp(devices[i].name, name)) return &devices[i];
  if (!make || device_count == MOST_DEVICES) return NULL;
  snprintf(devices[device_count].name, sizeof devices[0].name, "%s", name);
  return &devices[device_count++];
}

static Series *series(Device *d, const char *key) {
  if (!d) return NULL;
  for (int i = 0; i < d->n; i++)
    if (!strcmp(d->series[i].key, key)) return &d->series[i];
  return NULL;
}

static void add(char *line) {
  char *t = strtok(line, "|"), *name = strtok(NULL, "|"), *key = strtok(NULL, "|"), *text = strtok(NULL, "\n");
  if (!t || !name || !key || !text) return;
  Device *d = device_named(name, 1);
  Series *s = series(d, key);
  if (!d || (!s && d->n == MOST_KEYS)) abort();
  if (!s) snprintf((s = &d->series[d->n++])->key, sizeof s->key, "%s", key);
  s->t = realloc(s->t, (s->n + 1) * sizeof *s->t);
  s->v = realloc(s->v, (s->n + 1) * sizeof *s->v);
  s->area = realloc(s->area, (s->n + 1) * sizeof *s->area);
  s->text = realloc(s->text, (s->n + 1) * sizeof *s->text);
  s->t[s->n] = atof(t);
  s->v[s->n] = atof(text);
  s->text[s->n] = strdup(text);
  s->area[s->n] = s->n ? s->area[s->n - 1] + s->v[s->n - 1] * (s->t[s->n] - s->t[s->n - 1]) : 0;
  s->n++;
}

static int row(const Series *s, double t) {
  int low = 0, high = s->n - 1;
  if (high < 0 || t < s->t[0]) return -1;
  while (low < high) {
    int middle = (low + high + 1) / 2;
    if (s->t[middle] <= t) low = middle; else high = middle - 1;
  }
  return low;
}

static double monotonic(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

static double trace_time(void) {
  double t = 0;
  if (!clock_file) return epoch < 0 ? 0 : (monotonic() - epoch) * speed;
  FILE *f = fopen(clock_file, "r");
  if (!f || fscanf(f, "%lf", &t) != 1) t = 0;
  if (f) fclose(f);
  return t;
}

static void begin(void) {
  if (epoch < 0) epoch = monotonic();
}

static double looped(double t) { return period > 0 ? fmod(t, period) : t; }

static int number(Device *d, const char *key, double *value) {
  Series *s = series(d, key);
  int i = s ? row(s, looped(trace_time())) : -1;
  if (i < 0) return 0;
  *value = s->v[i];
  return 1;
}

static const char *text(Device *d, const char *key) {
  Series *s = series(d, key);
  return s && s->n ? s->text[0] : NULL;
}

static double partial(const Series *s, double t) {
  int i = row(s, t);
  return i < 0 ? 0 : s->area[i] + s->v[i] * (t - s->t[i]);
}

/* What a counter has counted at trace time t: the rate over real seconds. */
static double counted(Device *d, const char *key, double t) {
  Series *s = series(d, key);
  if (!s) return NAN;
  double whole = period > 0 ? floor(t / period) * partial(s, period) : 0;
  return (whole + partial(s, looped(t))) / speed;
}

/* "busy_s.FUNCTION": seconds of the processor that a call takes. */
static void busy(Device *d, const char *function) {
  char key[80];
  struct timespec now;
  snprintf(key, sizeof key, "busy_s.%s", function);
  const char *seconds = text(d, key);
  if (!seconds) return;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  double end = now.tv_sec + now.tv_nsec * 1e-9 + atof(seconds);
  do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  while (now.tv_sec + now.tv_nsec * 1e-9 < end);
}

static int injected(Device *d, const char *function) {
  char key[80];
  double now = 0;
  for (int every = 0; every < 2; every++) {
    snprintf(key, sizeof key, "error.%s", every ? "*" : function);
    Series *s = series(d, key);
    int i = s ? row(s, now ? now : (now = trace_time())) : -1;
    for (; i >= 0 && s->v[i] == HANGS; i = row(s, trace_time())) usleep(20000);
    if (i >= 0 && s->v[i] == CRASHES) abort();
    if (i >= 0 && s->v[i]) return (int)s->v[i];
  }
  return OK;
}

#define OPEN(d) \
  do { \
    if (!opened) return UNINITIALIZED; \
    busy(d, __func__); \
    int error_ = injected(d, __func__); \
    if (error_) return error_; \
  } while (0)

#define NUMBER(d, key, out) \
  do { \
    if (!number(d, key, &(out))) return NOT_SUPPORTED; \
  } while (0)

/* ---- the machine ---- */

int nvmlInitWithFlags(u32 flags) {
  (void)flags;
  char line[512];
  FILE *f = fopen(getenv("FAKE_NVML_TRACE") ? getenv("FAKE_NVML_TRACE") : "", "r");
  if (!f) return 9; /* driver not loaded */
  device_count = 0;
  memset(devices, 0, sizeof devices);
  while (fgets(line, sizeof line, f)) add(line);
  fclose(f);
  clock_file = getenv("FAKE_NVML_CLOCK");
  Device *machine = device_named("*", 1);
  speed = 1, period = 0;
  number(machine, "speed", &speed);
  number(machine, "period_s", &period);
  int error = injected(machine, __func__);
  opened += !error;
  return error;
}

int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return opened > 0 ? (opened--, OK) : UNINITIALIZED; }
const char *nvmlErrorString(int code) { return code ? "an error" : "The operation was successful"; }

static int copied(const char *from, char *to, u32 size) {
  if (!from) return NOT_SUPPORTED;
  snprintf(to, size, "%s", from);
  return OK;
}

int nvmlSystemGetDriverVersion(char *version, u32 size) {
  OPEN(device_named("*", 0));
  return copied(text(device_named("*", 0), "driver"), version, size);
}

int nvmlDeviceGetCount_v2(u32 *count) {
  OPEN(device_named("*", 0));
  *count = 0;
  for (int i = 0; i < device_count; i++) *count += text(&devices[i], "name") && !strchr(devices[i].name, ':');
  return OK;
}

int nvmlDeviceGetHandleByIndex_v2(u32 index, Device **out) {
  char name[16];
  snprintf(name, sizeof name, "%u", index);
  Device *d = device_named(name, 0);
  if (!d) return INVALID_ARGUMENT;
  OPEN(d);
  *out = d;
  return OK;
}

/* ---- one device ---- */

int nvmlDeviceGetName(Device *d, char *name, u32 size) { OPEN(d); return copied(text(d, "name"), name, size); }
int nvmlDeviceGetUUID(Device *d, char *uuid, u32 size) { OPEN(d); return copied(text(d, "uuid"), uuid, size); }

int nvmlDeviceGetMemoryInfo_v2(Device *d, MemoryV2 *m) {
  double total, used, reserved = 0;
  OPEN(d);
  NUMBER(d, "memory.total_gib", total);
  NUMBER(d, "mem.used_gib", used);
  number(d, "memory.reserved_gib", &reserved);
  m->total = total * GIB, m->reserved = reserved * GIB, m->used = used * GIB;
  m->free = m->total - m->reserved - m->used;
  return OK;
}

/* The first version counts what the driver reserves as used. */
int nvmlDeviceGetMemoryInfo(Device *d, Memory *m) {
  double total, used, reserved = 0;
  OPEN(d);
  NUMBER(d, "memory.total_gib", total);
  NUMBER(d, "mem.used_gib", used);
  number(d, "memory.reserved_gib", &reserved);
  m->total = total * GIB, m->used = (used + reserved) * GIB, m->free = m->total - m->used;
  return OK;
}

int nvmlDeviceGetUtilizationRates(Device *d, Utilization *u) {
  double gpu, memory;
  begin();
  OPEN(d);
  NUMBER(d, "util.kernel_time", gpu);
  NUMBER(d, "util.mem_controller", memory);
  u->gpu = lround(gpu * 100), u->memory = lround(memory * 100);
  return OK;
}

static int whole(Device *d, const char *key, double scale, u32 *out) {
  double value;
  NUMBER(d, key, value);
  *out = lround(value * scale);
  return OK;
}

int nvmlDeviceGetPowerUsage(Device *d, u32 *mw) { begin(); OPEN(d); return whole(d, "power.board_w", 1e3, mw); }
int nvmlDeviceGetEnforcedPowerLimit(Device *d, u32 *mw) { OPEN(d); return whole(d, "power.limit_w", 1e3, mw); }
int nvmlDeviceGetTemperature(Device *d, u32 sensor, u32 *c) { (void)sensor; OPEN(d); return whole(d, "temp.core_c", 1, c); }
int nvmlDeviceGetClockInfo(Device *d, u32 type, u32 *mhz) { (void)type; begin(); OPEN(d); return whole(d, "clock.sm_mhz", 1, mhz); }
int nvmlDeviceGetEncoderUtilization(Device *d, u32 *u, u32 *us) { OPEN(d); *us = 166667; return whole(d, "util.encoder", 100, u); }
int nvmlDeviceGetDecoderUtilization(Device *d, u32 *u, u32 *us) { OPEN(d); *us = 166667; return whole(d, "util.decoder", 100, u); }

static int reasons(Device *d, u64 *bits) {
  double value;
  NUMBER(d, "throttle.reasons", value);
  *bits = (u64)value;
  return OK;
}

int nvmlDeviceGetCurrentClocksEventReasons(Device *d, u64 *bits) { OPEN(d); return reasons(d, bits); }
int nvmlDeviceGetCurrentClocksThrottleReasons(Device *d, u64 *bits) { OPEN(d); return reasons(d, bits); }

int nvmlDeviceGetTotalEnergyConsumption(Device *d, u64 *mj) {
  OPEN(d);
  if (!text(d, "offers.energy")) return NOT_SUPPORTED;
  *mj = counted(d, "power.board_w", trace_time()) * 1e3;
  return OK;
}

/* Takes 20 ms, as the real one, which counts for as long; KB are 1024 bytes here. */
int nvmlDeviceGetPcieThroughput(Device *d, u32 direction, u32 *kb) {
  OPEN(d);
  if (!text(d, "offers.pcie_throughput")) return NOT_SUPPORTED;
  usleep(20000);
  return whole(d, direction ? "io.pcie_rx_mib_s" : "io.pcie_tx_mib_s", 1024, kb);
}

/* The link to the host: keys "pcie.lanes", "pcie.most_lanes", "pcie.gen", "pcie.most_gen", "pcie.bus". */
int nvmlDeviceGetCurrPcieLinkWidth(Device *d, u32 *n) { OPEN(d); return whole(d, "pcie.lanes", 1, n); }
int nvmlDeviceGetMaxPcieLinkWidth(Device *d, u32 *n) { OPEN(d); return whole(d, "pcie.most_lanes", 1, n); }
int nvmlDeviceGetCurrPcieLinkGeneration(Device *d, u32 *n) { OPEN(d); return whole(d, "pcie.gen", 1, n); }
int nvmlDeviceGetMaxPcieLinkGeneration(Device *d, u32 *n) { OPEN(d); return whole(d, "pcie.most_gen", 1, n); }

static void counter(Device *d, Field *f, const char *offer, const char *key, double unit) {
  const char *bits = text(d, offer);
  double count = counted(d, key, trace_time()) * unit;
  if (!bits || isnan(count)) { f->code = NOT_SUPPORTED; return; }
  f->type = atoi(bits) == 32 ? 1 : 3;
  f->value.wide = atoi(bits) == 32 ? (u64)count & 0xFFFFFFFFull : (u64)count;
}

int nvmlDeviceGetFieldValues(Device *d, int n, Field *fields) {
  OPEN(d);
  for (Field *f = fields; f < fields + n; f++) {
    double watts;
    int per_link = f->scope != 0xFFFFFFFFu; /* link 0 alone: not the sum that a reader wants */
    f->code = OK;
    switch (f->id) {
      case 83: counter(d, f, "offers.energy", "power.board_w", 1e3); break;
      case 138: counter(d, f, "offers.nvlink_counters", "io.nvlink_tx_mib_s", 1024. / (per_link ? 18 : 1)); break;
      case 139: counter(d, f, "offers.nvlink_counters", "io.nvlink_rx_mib_s", 1024. / (per_link ? 18 : 1)); break;
      case 197: counter(d, f, "offers.pcie_counters", "io.pcie_tx_mib_s", MIB); break;
      case 198: counter(d, f, "offers.pcie_counters", "io.pcie_rx_mib_s", MIB); break;
      case 186:
        if (!text(d, "offers.power_instant") || !number(d, "power.board_w", &watts)) f->code = NOT_SUPPORTED;
        else f->type = 1, f->value.wide = lround(watts * 1e3);
        break;
      default: f->code = NOT_SUPPORTED;
    }
  }
  return OK;
}

/* Status 0 where the other device is a peer over NVLink, 6 ("not supported") where not. */
int nvmlDeviceGetP2PStatus(Device *d, Device *other, u32 capability, u32 *status) {
  OPEN(d);
  const char *peers = text(d, "nvlink.peers");
  char list[128], wanted[40];
  (void)capability;
  snprintf(list, sizeof list, ",%s,", peers ? peers : "");
  snprintf(wanted, sizeof wanted, ",%s,", other->name);
  *status = strstr(list, wanted) ? 0 : 6;
  return OK;
}

/* ---- processes: keys "process.PID" and "process.children", GiB each; below 0 it is not there ----
 *
 * And programs that take part: FAKE_NVML_PROCESSES names a folder of files "DEVICE,PID,KIND" (compute, graphics
 * or mps) that hold "GIB SM_PERCENT"; a process is on the device while it lives. Clients of MPS are listed as
 * computing, too, and what they do counts as their server's, as on an H200 with driver 580.
 */

#define MPS_SERVER 1
typedef struct { u32 pid; double gib, sm; int mps; } Present;

static int present(Device *d, const char *kind, Present *out, int most) {
  const char *folder = getenv("FAKE_NVML_PROCESSES");
  DIR *names = folder ? opendir(folder) : NULL;
  int n = 0;
  for (struct dirent *entry; names && n < most && (entry = readdir(names));) {
    char path[600], device[32], what[16];
    Present p = {0, 0, 0, 0};
    if (sscanf(entry->d_name, "%31[^,],%u,%15s", device, &p.pid, what) != 3) continue;
    p.mps = !strcmp(what, "mps");
    if (strcmp(device, d->name) || (kind && strcmp(what, kind) && !(p.mps && !strcmp(kind, "compute")))) continue;
    snprintf(path, sizeof path, "/proc/%u/fd", p.pid);
    if (access(path, F_OK)) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%lf %lf", &p.gib, &p.sm) >= 1) out[n++] = p;
    if (f) fclose(f);
  }
  if (names) closedir(names);
  return n;
}

/* The sampler, which has a session of its own, measures a child of the process that started it. */
static int children(u32 *pids, int most) {
  int n = 0, parent = getsid(0) == getpid() ? getppid() : getpid();
  char path[300];
  snprintf(path, sizeof path, "/proc/%d/task", parent);
  DIR *tasks = opendir(path);
  for (struct dirent *task; tasks && (task = readdir(tasks));) {
    snprintf(path, sizeof path, "/proc/%d/task/%s/children", parent, task->d_name);
    FILE *f = fopen(path, "r");
    while (f && n < most && fscanf(f, "%u", &pids[n]) == 1) n++;
    if (f) fclose(f);
  }
  if (tasks) closedir(tasks);
  return n;
}

static int running(Device *d, u32 *count, Process *out, const char *kind) {
  u32 pids[MOST_PROCESSES];
  Process found[MOST_PROCESSES];
  Present there[MOST_PROCESSES];
  int n = 0, stated = getenv("FAKE_NVML_PROCESSES") != NULL, compute = !strcmp(kind, "compute");
  for (int i = present(d, kind, there, MOST_PROCESSES); i-- > 0;)
    found[n++] = (Process){there[i].pid, (u64)(there[i].gib * GIB), 0xFFFFFFFFu, 0xFFFFFFFFu};
  for (int i = 0; i < d->n && compute; i++) {
    const char *key = d->series[i].key;
    double gib;
    if (strncmp(key, "process.", 8)) continue;
    stated = 1;
    int many = strcmp(key, "process.children") ? 1 : children(pids, MOST_PROCESSES);
    if (strcmp(key, "process.children")) pids[0] = atoi(key + 8);
    if (!number(d, key, &gib) || gib < 0) continue;
    for (int k = 0; k < many && n < MOST_PROCESSES; k++)
      found[n++] = (Process){pids[k], isnan(gib) ? UNKNOWN_SIZE : (u64)(gib * GIB), 0xFFFFFFFFu, 0xFFFFFFFFu};
  }
  if (!stated && compute) return NOT_SUPPORTED;
  if ((u32)n > *count || (n && !out)) { *count = n; return INSUFFICIENT_SIZE; }
  if (n) memcpy(out, found, n * sizeof *out);
  *count = n;
  return OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(Device *d, u32 *n, Process *p) { OPEN(d); return running(d, n, p, "compute"); }
int nvmlDeviceGetComputeRunningProcesses_v2(Device *d, u32 *n, Process *p) { OPEN(d); return running(d, n, p, "compute"); }
int nvmlDeviceGetGraphicsRunningProcesses_v3(Device *d, u32 *n, Process *p) { OPEN(d); return running(d, n, p, "graphics"); }
int nvmlDeviceGetMPSComputeRunningProcesses_v3(Device *d, u32 *n, Process *p) { OPEN(d); return running(d, n, p, "mps"); }

/* What each process did since a time; success and no sample where nothing ran, as the real one. */
int nvmlDeviceGetProcessUtilization(Device *d, Utilized *out, u32 *count, u64 since) {
  Present there[MOST_PROCESSES];
  struct timespec now;
  (void)since;
  OPEN(d);
  if (!getenv("FAKE_NVML_PROCESSES")) return NOT_SUPPORTED;
  clock_gettime(CLOCK_REALTIME, &now);
  int n = present(d, NULL, there, MOST_PROCESSES);
  if (n && (!out || *count < (u32)n)) { *count = n; return INSUFFICIENT_SIZE; }
  for (int i = 0; i < n; i++)
    out[i] = (Utilized){there[i].mps ? MPS_SERVER : there[i].pid, now.tv_sec * 1000000ull + now.tv_nsec / 1000, lround(there[i].sm), 0, 0, 0};
  *count = n;
  return OK;
}

/* ---- MIG ---- */

int nvmlDeviceGetMigMode(Device *d, u32 *now, u32 *pending) {
  OPEN(d);
  int error = whole(d, "mig.mode", 1, now);
  *pending = *now;
  return error;
}

int nvmlDeviceGetMaxMigDeviceCount(Device *d, u32 *count) { OPEN(d); *count = 7; return OK; }

int nvmlDeviceGetMigDeviceHandleByIndex(Device *d, u32 index, Device **out) {
  OPEN(d);
  size_t length = strlen(d->name);
  for (int i = 0; i < device_count; i++)
    if (!strncmp(devices[i].name, d->name, length) && devices[i].name[length] == ':' && !index--) {
      *out = &devices[i];
      return OK;
    }
  return NOT_FOUND;
}

int nvmlDeviceGetGpuInstanceId(Device *d, u32 *id) {
  OPEN(d);
  const char *mark = strchr(d->name, ':');
  if (!mark) return INVALID_ARGUMENT;
  *id = atoi(mark + 1);
  return OK;
}

int nvmlDeviceGetComputeInstanceId(Device *d, u32 *id) { OPEN(d); *id = 0; return strchr(d->name, ':') ? OK : INVALID_ARGUMENT; }

/* ---- GPM: a sample holds what every metric has counted; a metric is the mean between two ---- */

static const struct { u32 id; const char *key; double unit; } METRICS[] = {
    {2, "util.sm_active", 100},       {3, "util.sm_occupancy", 100},  {5, "util.tensor_active", 100},
    {10, "util.dram_active", 100},    {12, "util.fp32_active", 100},  {20, "io.pcie_tx_mib_s", 1},
    {21, "io.pcie_rx_mib_s", 1},      {60, "io.nvlink_rx_mib_s", 1},  {61, "io.nvlink_tx_mib_s", 1},
};
enum { METRIC_COUNT = sizeof METRICS / sizeof METRICS[0] };

int nvmlGpmQueryDeviceSupport(Device *d, GpmSupport *answer) {
  OPEN(d);
  answer->supported = text(d, "offers.gpm") != NULL;
  return OK;
}

int nvmlGpmSampleAlloc(Sample **out) { return (*out = calloc(1, sizeof **out)) ? OK : 20; }
int nvmlGpmSampleFree(Sample *sample) { free(sample); return OK; }

static int sampled(Device *d, Sample *sample) {
  if (!text(d, "offers.gpm")) return NOT_SUPPORTED;
  sample->device = d;
  sample->at = trace_time();
  for (int i = 0; i < METRIC_COUNT; i++) sample->area[i] = counted(d, METRICS[i].key, sample->at) * speed;
  return OK;
}

int nvmlGpmSampleGet(Device *d, Sample *sample) { OPEN(d); return sampled(d, sample); }

int nvmlGpmMigSampleGet(Device *d, u32 instance, Sample *sample) {
  char name[40];
  OPEN(d);
  snprintf(name, sizeof name, "%s:%u", d->name, instance);
  Device *part = device_named(name, 0);
  return part ? sampled(part, sample) : NOT_FOUND;
}

int nvmlGpmMetricsGet(Metrics *asked) {
  if (!asked->first->device || asked->first->device != asked->second->device) return INVALID_ARGUMENT;
  OPEN(asked->first->device);
  double seconds = asked->second->at - asked->first->at;
  if (seconds <= 0) return INVALID_ARGUMENT;
  for (u32 i = 0; i < asked->n; i++) {
    Metric *m = &asked->metrics[i];
    m->code = NOT_SUPPORTED;
    for (int k = 0; k < METRIC_COUNT; k++) {
      double area = asked->second->area[k] - asked->first->area[k];
      if (METRICS[k].id == m->id && !isnan(area)) m->code = OK, m->value = area / seconds * METRICS[k].unit;
    }
  }
  return OK;
}
