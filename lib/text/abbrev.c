/*
 * abbrev.c: tells "Dr. Low" and "z. B." from the end of a sentence, for plan.c, which cuts long lines. Initials
 * and letters with full stops between (J. K., e.g., U.S.), numbers of one or two digits (3. Mai) and common
 * abbreviations of titles, names and references in some languages. What may well end a sentence (etc., usw.,
 * Inc.) is left out: to cut there is better than to cut within a sentence.
 */
#include "text/abbrev.h"

#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"

/* In the order of their bytes. */
static const char *const known[] = {
    "Abb",  "Abs",  "Adm",  "Anm",   "Aufl",  "Ave",    "Bd",   "Bde",  "Blvd", "Brig",   "Bros",
    "Capt", "Cf",   "Cmdr", "Co",    "Col",   "Cpl",    "Dipl", "Dott", "Dr",   "Dra",    "Drs",
    "Ed",   "Eq",   "Fig",  "Figs",  "Fn",    "Fr",     "Ft",   "Gen",  "Gov",  "Hon",    "Hr",
    "Hrn",  "Hrsg", "Ing",  "Jr",    "Kap",   "Lt",     "MM",   "Mag",  "Maj",  "Messrs", "Mgr",
    "Mlle", "Mme",  "Mmes", "Mr",    "Mrs",   "Ms",     "Msgr", "Mt",   "No",   "Nos",    "Nr",
    "Nrn",  "Ph.D", "Phil", "Pres",  "Prof",  "Profs",  "Pvt",  "Rep",  "Rev",  "Sen",    "Sgt",
    "Sig",  "Sr",   "Sra",  "Srta",  "St",    "Ste",    "Str",  "Supt", "Tel",  "Ud",     "Uds",
    "Verf", "Vgl",  "Vol",  "Vols",  "abb",   "approx", "bspw", "bzgl", "bzw",  "ca",     "cf",
    "dgl",  "ebd",  "eds",  "engl",  "evtl",  "fig",    "figs", "frz",  "geb",  "gegr",   "gest",
    "ggf",  "inkl", "insb", "jährl", "kap",   "lat",    "mind", "nos",  "nr",   "pp",     "prof",
    "resp", "sog",  "st",   "tel",   "ungef", "vgl",    "viz",  "vol",  "vols", "vs",     "zzgl",
};

static int compare(const void *word, const void *entry)
{
    return strcmp(word, *(const char *const *)entry);
}

/* Letters, each but the last with a full stop behind it, or one or two digits. */
static bool is_initials(const char *word, size_t n)
{
    bool is_number = n <= 2;
    for (size_t i = 0; i < n; i++)
        is_number &= word[i] >= '0' && word[i] <= '9';
    for (size_t i = 0; i < n && !is_number; i++) {
        uint32_t cp;
        int len = utf8_next(word + i, n - i, &cp);
        i += (size_t)len;
        if (len == 0 || !utf8_is_joined(cp) || (cp >= '0' && cp <= '9') || (i < n && word[i] != '.'))
            return false;
    }
    return n > 0;
}

bool abbrev_is(const char *word, size_t n)
{
    char text[16];
    uint32_t cp;
    int len;
    while ((len = utf8_next(word, n, &cp)) > 0 && !utf8_is_joined(cp)) {
        word += len;
        n -= (size_t)len;
    }
    if (n == 0 || n >= sizeof(text))
        return false;
    memcpy(text, word, n);
    text[n] = '\0';
    return is_initials(word, n) ||
           bsearch(text, known, sizeof(known) / sizeof(*known), sizeof(*known), compare) != NULL;
}
