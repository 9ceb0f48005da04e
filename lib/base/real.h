/*
 * real.h: the type of all activations and weights. The library is float; a second build with -DREAL_IS_DOUBLE
 * of num/, nn/ and model/ serves the gradient checks and golden values of the tests.
 */
#ifndef TFM_BASE_REAL_H
#define TFM_BASE_REAL_H

#ifdef REAL_IS_DOUBLE
typedef double real;
#else
typedef float real;
#endif

#endif
