/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The id maps of a user namespace, and how they are written (user_namespaces(7), newuidmap(1)). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "util/cleanup.h"

#define USER_MAP_EXTENTS_MAX 16

typedef struct UserMapExtent {
        uint32_t inside, outside, count;
} UserMapExtent;

typedef struct UserMap {
        UserMapExtent uids[USER_MAP_EXTENTS_MAX], gids[USER_MAP_EXTENTS_MAX];
        unsigned n_uids, n_gids;
        bool by_helper; /* newuidmap and newgidmap write it: it holds more than the caller's own id */
} UserMap;

/* The map for a container of an ordinary user: 0 inside is the user, and 1 up are the user's subordinate ids where
 * subuid and subgid (paths, /etc/subuid and /etc/subgid in real life) give any and both helpers are installed;
 * else only the one id. `user` is the login name or NULL. */
void user_map_own(uid_t uid, gid_t gid, const char *user, const char *subuid, const char *subgid,
                  bool have_helpers, UserMap *ret);

/* Reads the first range for `user` (or the uid in decimal) of a file in the form of subuid(5). 1 and the range, 0
 * without one, negative errno. */
int user_map_read_range(const char *path, const char *user, uid_t uid, uint32_t *ret_start,
                        uint32_t *ret_count);

/* True when a single id is mapped: setgroups(2) is denied then. */
static inline bool user_map_one_id(const UserMap *map) {
        return !map->by_helper;
}

typedef struct UserMapWrite UserMapWrite;
typedef void (*user_map_written_t)(int error, const char *detail, void *userdata);

/* Writes the maps of process pid. The callback comes from the event loop or, when no helper is needed, before this
 * returns; with 0 or a negative errno and the name of what failed. *ret is the caller's until the callback, and NULL
 * when that has been called already. */
int user_map_write(sd_event *event, const UserMap *map, pid_t pid, user_map_written_t callback,
                   void *userdata, UserMapWrite **ret);
UserMapWrite *user_map_write_free(UserMapWrite *write);
