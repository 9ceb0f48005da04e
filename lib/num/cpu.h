/*
 * cpu.h: which tier of kernels this machine can run, from CPUID and XCR0. TFM_CPU can only take features
 * away.
 */
#ifndef TFM_NUM_CPU_H
#define TFM_NUM_CPU_H

#include "base/err.h"

enum cpu_tier { CPU_REF, CPU_AVX2, CPU_VNNI, CPU_AMX, CPU_N_TIERS };

/* The highest tier of the machine. Linux gives AMX to a process that asks for it: the first call does. */
enum cpu_tier cpu_best(void);
const char *cpu_tier_name(enum cpu_tier tier);

/* The tier for a name ("ref", "avx2", "vnni", "amx", "auto" or NULL): an error when the name is unknown or the
 * machine lacks it. */
enum tfm_status cpu_choose(const char *name, enum cpu_tier *tier, struct tfm_error *err);

/* The tier for all that starts from now on: TFM_CPU's or the best one until cpu_set says otherwise. */
enum tfm_status cpu_set(const char *name, struct tfm_error *err);
/* An error where TFM_CPU names a tier that is not there. */
enum tfm_status cpu_current(enum cpu_tier *tier, struct tfm_error *err);

#endif
