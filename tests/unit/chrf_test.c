/*
 * chrf_test.c: chrF against sacreBLEU.
 */
#include "text/chrf.h"

#include "unit/metric_checks.h"

int main(void)
{
    metric_score = chrf_score;
    metric_is_bleu = false;
    metric_check_all();
    return check_done();
}
