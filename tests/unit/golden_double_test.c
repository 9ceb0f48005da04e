/*
 * golden_double_test.c: activations, loss and gradients of small models against PyTorch, both in
 * float64. Measured: errors of up to 6e-15 of the largest value.
 */
#include "golden/golden.h"

int main(void)
{
    return golden_main(1e-12);
}
