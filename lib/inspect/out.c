/*
 * out.c: the frame around everything that inspect writes: the C locale for the numbers inside, and one place
 * at the end that asks whether all of it arrived. The writers between may print without looking at each
 * result, since a stream remembers its failure.
 */
#include "inspect/out.h"

#include <errno.h>
#include <string.h>

#include "text/utf8.h"

enum tfm_status out_begin(struct out *out, FILE *file, struct tfm_error *err)
{
    out->file = file;
    out->c_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (out->c_locale == (locale_t)0)
        return err_set(err, TFM_ENOMEM, "no memory for a locale");
    out->before = uselocale(out->c_locale);
    errno = 0;
    return TFM_OK;
}

enum tfm_status out_end(struct out *out, enum tfm_status status, struct tfm_error *err)
{
    bool failed = fflush(out->file) != 0 || ferror(out->file);
    int reason = errno;
    uselocale(out->before);
    freelocale(out->c_locale);
    if (status != TFM_OK || !failed)
        return status;
    errno = reason != 0 ? reason : EIO;
    return err_io(err, "the output could not be written");
}

json_t *out_string(const char *text)
{
    struct str repaired = { 0 };
    enum tfm_status status = utf8_repair(&repaired, text, strlen(text), NULL);
    json_t *string = status == TFM_OK ? json_string(repaired.data) : NULL;
    str_release(&repaired);
    return string;
}
