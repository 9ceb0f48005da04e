/*
 * tfm.c: the program: a table of commands, help and version, and what all commands share: how they report a
 * failure and how they end. Nothing here or below calls setlocale, so numbers have a decimal point
 * everywhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
};

static const struct command commands[] = {
    { "train", cmd_train, "train a model on parallel or plain text, or go on with a training" },
    { "translate", cmd_translate, "translate text line by line" },
    { "score", cmd_score, "score given translations, or texts" },
    { "shortlist", cmd_shortlist, "make a lexical shortlist, with which a model translates faster" },
    { "inspect", cmd_inspect, "show what a model is, where it looks, and how it fills gaps" },
    { "convert", cmd_convert, "write a model in another form, or the mean of several" },
};

enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void print_usage(FILE *out)
{
    fprintf(out, "usage: tfm COMMAND [OPTION]... [ARGUMENT]...\n"
                 "       tfm -h | --help | --version | help COMMAND\n\n"
                 "tfm trains, runs and explains Transformer translation models.\n\ncommands:\n");
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf(out, "\n`tfm help COMMAND` shows a command's options, `man tfm-COMMAND` explains them.\n");
}

enum tfm_status cmd_error(struct tfm_error *err, enum tfm_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err->status = status;
    vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    return status;
}

int cmd_failed(const char *command, const struct tfm_error *err)
{
    fprintf(stderr, "%s: %s\n", command, err->message);
    return err->status == TFM_EINVAL ? EXIT_USAGE : EXIT_FAILURE;
}

const char *cmd_shown_path(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

const char *cmd_scratch_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder != NULL && *folder != '\0' ? folder : "/tmp";
}

int cmd_flush(const char *command, int status)
{
    bool failed = fflush(stdout) != 0 || ferror(stdout);
    if (!failed || status != EXIT_SUCCESS) /* one failure is reported, the first */
        return status;
    fprintf(stderr, "%s: cannot write standard output: %s\n", command, strerror(errno));
    return EXIT_FAILURE;
}

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static int unknown_command(const char *name)
{
    fprintf(stderr, "tfm: found '%s', expected a command: ", name);
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(stderr, "%s%s", commands[i].name,
                i < N_COMMANDS - 2   ? ", "
                : i < N_COMMANDS - 1 ? " or "
                                     : "");
    fprintf(stderr, " (tfm -h shows what they do)\n");
    return EXIT_USAGE;
}

static int show_help(int argc, char **argv)
{
    if (argc < 3) {
        print_usage(stdout);
        return EXIT_SUCCESS;
    }
    const struct command *command = find_command(argv[2]);
    char *help[] = { argv[2], "-h", NULL };
    return command != NULL ? command->run(2, help) : unknown_command(argv[2]);
}

/* Without this, a file opened later could take the number of a closed standard stream, and be written to as
 * such. */
static void fill_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        /* The direction is the wrong one, so that using the stream fails as it should. */
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            exit(EXIT_FAILURE);
    }
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    const struct command *command = find_command(name);
    int status = EXIT_SUCCESS;
    if (command != NULL)
        status = command->run(argc - 1, argv + 1);
    else if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "help") == 0)
        status = show_help(strcmp(name, "help") == 0 ? argc : 2, argv);
    else if (strcmp(name, "--version") == 0)
        printf("tfm %s\n", tfm_version());
    else
        status = unknown_command(name);
    return cmd_flush("tfm", status);
}

int main(int argc, char **argv)
{
    fill_closed_streams();
    /* A file that grows beyond the limit (ulimit -f) is an error to report, not a death. */
    signal(SIGXFSZ, SIG_IGN);
    int status = run(argc, argv);
#ifndef __SANITIZE_ADDRESS__ /* which looks for leaks at the exit */
    /* Without the clean-up of libraries: a thread that OpenBLAS started (--gemm blas) asks for memory without
     * an end where address space is short (ulimit -v), and OpenBLAS would wait for that thread. */
    _exit(status);
#endif
    return status;
}
