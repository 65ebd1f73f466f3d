/*
 * What the front knows of parameter files: where they are, whose they are, whether they can be loaded at all. It
 * looks at heads and lengths, never at points, and remembers what it saw for as long as the file is the same.
 *
 * A look may take as long as the disk does. Who must not wait, whoever renders a file of the mount, asks for what was seen last;
 * a thread of the watch looks once a second. Any thread may call anything here.
 */
#ifndef DAEMON_PARAMS_WATCH_H
#define DAEMON_PARAMS_WATCH_H

#include "gpu/srs.h"

struct params_watch;

/* `dir` (NULL or empty: the search order of srs_find) and `memory` (as in srs_options) are borrowed, and so is `made`: where the keys are
 * of parameters that devices make of which there is no file (setup_keep_key); NULL: they make none. 0 or -ENOMEM. */
int params_watch_create(const char *dir, const char *memory, const char *made,
                        struct params_watch **out);
void params_watch_destroy(struct params_watch *w);

/* Looks at all, and starts the thread that does so again and again. */
int params_watch_start(struct params_watch *w);

/* As srs_look. */
int params_watch_look(struct params_watch *w, const struct sector_size *size, struct srs_look *out,
                      struct errmsg *err);

/* What params_watch_look found last, by whoever called it. -ENOENT before anybody has. Never waits. */
int params_watch_last(struct params_watch *w, const struct sector_size *size, struct srs_look *out,
                      struct errmsg *err);

/* Where the watch's thread looked last, as srs_list_dirs; empty before it has. Never waits. */
void params_watch_dirs(struct params_watch *w, struct errmsg *out);

/* The key of what the last look found, if that look began after `since_ms` (of CLOCK_MONOTONIC). -EAGAIN: it did not; -ENOENT: nobody
 * knows the key yet; or as the look. Never waits. */
int params_watch_key(struct params_watch *w, const struct sector_size *size, int64_t since_ms,
                     uint8_t vk_digest[SRS_VK_DIGEST_BYTES]);

/* There was a file at the last look, whatever may be in it, or devices make what it would hold. Never waits. */
bool params_watch_is_there(struct params_watch *w, const struct sector_size *size);

/* Another number whenever the file that would be loaded is another one: gone, come, written, linked, its marker and the
 * file of its transformed points too. */
uint64_t params_watch_stamp(struct params_watch *w, const struct sector_size *size);

#endif
