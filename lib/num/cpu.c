/*
 * cpu.c: what the CPU can do (CPUID) and what the system lets it do (XCR0: are the wide registers saved?), as
 * a tier.
 */
#include "num/cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && !defined(REAL_IS_DOUBLE)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t xcr0(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* features: edx of leaf 7; saved: XCR0, whose bits 17 and 18 are the tiles' configuration and data. */
static bool has_amx(unsigned features, uint64_t saved)
{
    const unsigned bf16 = 1u << 22, tiles = 1u << 24, int8 = 1u << 25;
    const long request_permission = 0x1023, tile_data = 18;
    return (features & tiles) && (features & int8) && (features & bf16) && (saved & 0x60000) == 0x60000 &&
           syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

enum cpu_tier cpu_best(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_FMA) || !(c & bit_F16C))
        return CPU_REF;
    uint64_t saved = xcr0();
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2) || (saved & 6) != 6)
        return CPU_REF;
    unsigned wide = bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ;
    if ((b & wide) == wide && (c & bit_AVX512VNNI) && (saved & 0xe6) == 0xe6)
        return has_amx(d, saved) ? CPU_AMX : CPU_VNNI;
    return CPU_AVX2;
}
#else
enum cpu_tier cpu_best(void) { return CPU_REF; }
#endif

static const char *const names[CPU_N_TIERS] = { "ref", "avx2", "vnni", "amx" };

const char *cpu_tier_name(enum cpu_tier tier) { return names[tier]; }

enum tfm_status cpu_choose(const char *name, enum cpu_tier *tier, struct tfm_error *err)
{
    enum cpu_tier best = cpu_best();
    *tier = best;
    if (!name || !*name || strcmp(name, "auto") == 0)
        return TFM_OK;
    for (int i = 0; i < CPU_N_TIERS; i++) {
        if (strcmp(name, names[i]) != 0)
            continue;
        if (i > (int)best)
            return err_set(err, TFM_EINVAL,
                           "the CPU tier \"%s\" is not to be had on this machine; its best is \"%s\"", name,
                           names[best]);
        *tier = (enum cpu_tier)i;
        return TFM_OK;
    }
    return err_set(err, TFM_EINVAL, "unknown CPU tier \"%s\"; expected auto, ref, avx2, vnni or amx", name);
}

static _Atomic int chosen = -1;

enum tfm_status cpu_set(const char *name, struct tfm_error *err)
{
    enum cpu_tier tier;
    TRY(cpu_choose(name, &tier, err));
    chosen = (int)tier;
    return TFM_OK;
}

enum tfm_status cpu_current(enum cpu_tier *tier, struct tfm_error *err)
{
    int set = chosen;
    if (set < 0)
        return cpu_choose(getenv("TFM_CPU"), tier, err);
    *tier = (enum cpu_tier)set;
    return TFM_OK;
}
