/*
 * kern.c: the table of kernels for a tier.
 */
#include "num/kern.h"

const struct kern *kern_for(enum cpu_tier tier)
{
#if defined(__x86_64__) && !defined(REAL_IS_DOUBLE)
    if (tier == CPU_AMX)
        return &kern_amx;
    if (tier == CPU_VNNI)
        return &kern_vnni;
    if (tier == CPU_AVX2)
        return &kern_avx2;
#endif
    (void)tier;
    return &kern_ref;
}
