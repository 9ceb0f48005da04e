/*
 * bleu_test.c: BLEU against sacreBLEU.
 */
#include "text/bleu.h"

#include "unit/metric_checks.h"

int main(void)
{
    metric_score = bleu_score;
    metric_is_bleu = true;
    metric_check_all();
    return check_done();
}
