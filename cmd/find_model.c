/*
 * find_model.c: finds the model that comes with tfm: in the checkout beside the program's build folder,
 * beside the program itself, in the share folder of the prefix that the program lies in, and in that of the
 * prefix it was built for.
 */
#include "find_model.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef TFM_DATADIR
#define TFM_DATADIR "/usr/local/share/tfm"
#endif

#define SHIPPED "models/en-de"

/* The folder of the running program, links resolved; false where the system does not tell. */
static bool program_folder(char *folder, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", folder, size - 1);
    if (n <= 0)
        return false;
    folder[n] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash == NULL)
        return false;
    *slash = '\0';
    return true;
}

/* Prints a path into `path`; false if it holds no model. */
static bool is_model(struct model_path *path, const char *folder, const char *below)
{
    char config[PATH_MAX];
    int n = snprintf(path->text, sizeof(path->text), "%s/%s", folder, below);
    int n_config = snprintf(config, sizeof(config), "%s/%s/config.json", folder, below);
    return n < (int)sizeof(path->text) && n_config < (int)sizeof(config) && access(config, F_OK) == 0;
}

enum tfm_status find_model(struct model_path *path, const char *named, struct tfm_error *err)
{
    static const char *const near_program[] = { "../" SHIPPED, SHIPPED, "../share/tfm/" SHIPPED };
    if (named != NULL && *named == '\0') /* most likely a variable that is not set: no reason to take another */
        return cmd_error(err, TFM_EINVAL, "found '' as the name of the model, expected a folder");
    if (named == NULL)
        named = getenv("TFM_MODEL");
    if (named != NULL && *named != '\0') {
        if (snprintf(path->text, sizeof(path->text), "%s", named) >= (int)sizeof(path->text))
            return cmd_error(err, TFM_EINVAL, "the model's path is longer than %d bytes", PATH_MAX - 1);
        return TFM_OK;
    }
    char folder[PATH_MAX];
    bool has_folder = program_folder(folder, sizeof(folder));
    for (size_t i = 0; has_folder && i < sizeof(near_program) / sizeof(near_program[0]); i++) {
        if (is_model(path, folder, near_program[i]))
            return TFM_OK;
    }
    if (is_model(path, TFM_DATADIR, SHIPPED))
        return TFM_OK;
    return cmd_error(
        err, TFM_EIO,
        "no model was named, and none is in the usual places: name a folder with -m or in TFM_MODEL "
        "(looked for %s in %s, in its parent, in ../share/tfm from there and in %s)",
        SHIPPED, has_folder ? folder : "the program's folder", TFM_DATADIR);
}
