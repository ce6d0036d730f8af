/* A libnvidia-ml.so.1 that misbehaves as NVML_STUB says; built by test_nvml_library.py. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned int u32;
typedef unsigned long long u64;

static int is(const char *mode) {
    const char *told = getenv("NVML_STUB");
    return told && strcmp(told, mode) == 0;
}

static void die(const char *where) {
    char mode[64];
    snprintf(mode, sizeof mode, "%s-segv", where);
    if (is(mode)) *(volatile int *)0 = 1;
    snprintf(mode, sizeof mode, "%s-exit", where);
    if (is(mode)) exit(0);
    snprintf(mode, sizeof mode, "%s-abort", where);
    if (is(mode)) abort();
    snprintf(mode, sizeof mode, "%s-hang", where);
    if (is(mode)) for (;;) pause();
    snprintf(mode, sizeof mode, "%s-spin", where);
    if (is(mode)) for (;;) ;
    snprintf(mode, sizeof mode, "%s-chatter", where);
    if (is(mode)) for (;;) puts("0123456789012345678901234567890123456789012345678901234567890123456789");
    snprintf(mode, sizeof mode, "%s-eat", where);
    if (is(mode)) for (;;) { void *room = malloc(64 << 20); if (!room) abort(); memset(room, 1, 64 << 20); }
    snprintf(mode, sizeof mode, "%s-close", where);
    if (is(mode)) for (int handle = 0; handle < 64; handle++) close(handle);
}

static int number(u32 *out, u32 value) { *out = is("absurd") ? 0xFFFFFFFFu : value; return 0; }

static int text(char *out, u32 room, const char *value) {
    if (is("absurd")) memset(out, '\x1b', room);
    else if (is("bytes")) memset(out, '\xff', room);
    else if (is("huge-version")) { memset(out, '9', room - 1); out[room - 1] = 0; }
    else snprintf(out, room, "%s", value);
    return 0;
}

__attribute__((constructor)) static void load(void) { die("load"); }

int nvmlInit_v2(void) {
    die("init");
    if (is("chatty")) { puts("envdoctor-answer:{\"gpus\": 1}"); fflush(stdout); }
    return is("refuses") ? 999 : is("not-loaded") ? 9 : 0;
}

int nvmlShutdown(void) { die("shutdown"); return 0; }
const char *nvmlErrorString(int code) { die("words"); return code == 9 ? "Driver Not Loaded" : "Unknown Error"; }
int nvmlSystemGetDriverVersion(char *out, u32 room) { return text(out, room, "580.95.05"); }
int nvmlSystemGetNVMLVersion(char *out, u32 room) { return text(out, room, "13.580.95.05"); }
int nvmlSystemGetCudaDriverVersion_v2(u32 *out) { return number(out, 13000); }
int nvmlDeviceGetCount_v2(u32 *out) { *out = is("billions") ? 4000000000u : is("many") ? 200 : 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(u32 index, void **out) { *out = (void *)(u64)(index + 1); return 0; }
int nvmlDeviceGetName(void *device, char *out, u32 room) { die("name"); return text(out, room, "NVIDIA H200"); }
int nvmlDeviceGetUUID(void *device, char *out, u32 room) { return text(out, room, "GPU-0"); }
int nvmlDeviceGetSerial(void *device, char *out, u32 room) { return text(out, room, "1"); }

int nvmlDeviceGetCudaComputeCapability(void *device, u32 *major, u32 *minor) {
    return number(major, 9) + number(minor, 0);
}

int nvmlDeviceGetMemoryInfo(void *device, u64 *out) {
    for (int i = 0; i < 3; i++) out[i] = is("absurd") ? ~0ull : 150754820096ull >> (i > 0);
    return 0;
}

int nvmlDeviceGetMigMode(void *device, u32 *current, u32 *pending) {
    return number(current, is("mig")) + number(pending, 0);
}

int nvmlDeviceGetMaxMigDeviceCount(void *device, u32 *out) { *out = 4000000000u; return 0; }
int nvmlDeviceGetEccMode(void *device, u32 *one, u32 *two) { return number(one, 1) + number(two, 1); }
int nvmlDeviceGetTotalEccErrors(void *device, int a, int b, u64 *out) { *out = is("absurd") ? ~0ull : 0; return 0; }
int nvmlDeviceGetPersistenceMode(void *device, u32 *out) { return number(out, 1); }
int nvmlDeviceGetComputeMode(void *device, u32 *out) { return number(out, 0); }
int nvmlDeviceGetCurrPcieLinkGeneration(void *device, u32 *out) { return number(out, 5); }
int nvmlDeviceGetMaxPcieLinkGeneration(void *device, u32 *out) { return number(out, 5); }
int nvmlDeviceGetCurrPcieLinkWidth(void *device, u32 *out) { return number(out, 16); }
int nvmlDeviceGetMaxPcieLinkWidth(void *device, u32 *out) { return number(out, 16); }
int nvmlDeviceGetNvLinkState(void *device, u32 link, u32 *out) { return link < 18 ? number(out, 1) : 2; }

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, u64 *out) { *out = is("absurd") ? ~0ull : 0; return 0; }

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, u32 *count, void *entries) {
    *count = is("absurd") ? 0xFFFFFFFFu : 0;
    if (is("absurd")) memset(entries, 0xff, 128 * 24);
    return 0;
}
