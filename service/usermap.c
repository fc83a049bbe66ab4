/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/usermap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/helper.h"
#include "util/fd.h"

#define SUBID_FILE_MAX (1U << 20)
#define HELPER_TIMEOUT_USEC (10U * 1000U * 1000U)
#define ARGUMENT_MAX 16

static int parse_id(const char *text, uint32_t *ret) {
        unsigned long value;
        char *end;

        if (*text < '0' || *text > '9')
                return -EINVAL;
        errno = 0;
        value = strtoul(text, &end, 10);
        if (errno != 0 || *end || value > UINT32_MAX - 1)
                return -EINVAL;
        *ret = (uint32_t) value;
        return 0;
}

int user_map_read_range(const char *path, const char *user, uid_t uid, uint32_t *ret_start,
                        uint32_t *ret_count) {
        _cleanup_free_ char *text = NULL;
        char number[16], *line, *rest;
        int r;

        r = fd_read_file(AT_FDCWD, path, 0, SUBID_FILE_MAX, &text, NULL);
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return r;
        (void) snprintf(number, sizeof(number), "%u", uid);

        rest = text;
        while ((line = strsep(&rest, "\n"))) {
                const char *owner = strsep(&line, ":");
                const char *start = line ? strsep(&line, ":") : NULL;
                uint32_t first, count;

                if (!start || !line)
                        continue;
                if (strcmp(owner, number) != 0 && (!user || strcmp(owner, user) != 0))
                        continue;
                if (parse_id(start, &first) < 0 || parse_id(line, &count) < 0 || count == 0 ||
                    first > UINT32_MAX - 1 - count)
                        continue;
                *ret_start = first;
                *ret_count = count;
                return 1;
        }
        return 0;
}

void user_map_own(uid_t uid, gid_t gid, const char *user, const char *subuid, const char *subgid,
                  bool have_helpers, UserMap *ret) {
        UserMap map = {
                .uids = { { 0, uid, 1 } },
                .gids = { { 0, gid, 1 } },
                .n_uids = 1,
                .n_gids = 1,
        };
        uint32_t uid_start, uid_count, gid_start, gid_count;

        if (have_helpers && user_map_read_range(subuid, user, uid, &uid_start, &uid_count) > 0 &&
            user_map_read_range(subgid, user, uid, &gid_start, &gid_count) > 0) {
                map.uids[map.n_uids++] = (UserMapExtent) { 1, uid_start, uid_count };
                map.gids[map.n_gids++] = (UserMapExtent) { 1, gid_start, gid_count };
                map.by_helper = true;
        }
        *ret = map;
}

struct UserMapWrite {
        sd_event *event;
        UserMap copy;
        pid_t pid;
        Helper *helper; /* owned */
        bool gids_left;
        user_map_written_t callback;
        void *userdata;
};

UserMapWrite *user_map_write_free(UserMapWrite *write) {
        if (!write)
                return NULL;
        (void) helper_free(write->helper);
        (void) sd_event_unref(write->event);
        free(write);
        return NULL;
}

static int write_file(pid_t pid, const char *file, const char *text) {
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
        return fd_write_file(AT_FDCWD, path, text);
}

static int write_extents(pid_t pid, const char *file, const UserMapExtent *extents, unsigned n) {
        char text[USER_MAP_EXTENTS_MAX * 40];
        size_t length = 0;

        for (unsigned i = 0; i < n; i++)
                length += (size_t) snprintf(text + length, sizeof(text) - length, "%u %u %u\n",
                                            extents[i].inside, extents[i].outside, extents[i].count);
        return write_file(pid, file, text);
}

static int write_directly(const UserMap *map, pid_t pid, const char **ret_detail) {
        int r;

        /* An ordinary user may map the own group only after having given up setgroups(2). */
        if (geteuid() != 0) {
                *ret_detail = "setgroups";
                r = write_file(pid, "setgroups", "deny");
                if (r < 0)
                        return r;
        }
        *ret_detail = "gid_map";
        r = write_extents(pid, "gid_map", map->gids, map->n_gids);
        if (r < 0)
                return r;
        *ret_detail = "uid_map";
        return write_extents(pid, "uid_map", map->uids, map->n_uids);
}

static int start_helper(UserMapWrite *write);

static void on_helper_exited(Helper *helper, int code, int status, void *userdata) {
        UserMapWrite *write = userdata;
        const char *detail = write->gids_left ? "newuidmap" : "newgidmap";
        user_map_written_t callback = write->callback;
        void *callback_data = write->userdata;
        int r = 0;

        write->helper = NULL;
        if (status == -ETIMEDOUT)
                r = -ETIMEDOUT;
        else if (code != CLD_EXITED || status != 0)
                r = -EPERM;
        else if (write->gids_left) {
                write->gids_left = false;
                r = start_helper(write);
                if (r >= 0)
                        return;
                detail = "newgidmap";
        }
        (void) user_map_write_free(write);
        callback(r, detail, callback_data);
}

static int start_helper(UserMapWrite *write) {
        const UserMapExtent *extents = write->gids_left ? write->copy.uids : write->copy.gids;
        unsigned n = write->gids_left ? write->copy.n_uids : write->copy.n_gids;
        char numbers[USER_MAP_EXTENTS_MAX * 3 + 1][ARGUMENT_MAX];
        char *argv[USER_MAP_EXTENTS_MAX * 3 + 3];
        size_t k = 0;

        (void) snprintf(numbers[k++], ARGUMENT_MAX, "%d", write->pid);
        for (unsigned i = 0; i < n; i++) {
                (void) snprintf(numbers[k++], ARGUMENT_MAX, "%u", extents[i].inside);
                (void) snprintf(numbers[k++], ARGUMENT_MAX, "%u", extents[i].outside);
                (void) snprintf(numbers[k++], ARGUMENT_MAX, "%u", extents[i].count);
        }
        argv[0] = (char *) (write->gids_left ? "newuidmap" : "newgidmap");
        for (size_t i = 0; i < k; i++)
                argv[i + 1] = numbers[i];
        argv[k + 1] = NULL;
        return helper_start(write->event, argv, HELPER_TIMEOUT_USEC, on_helper_exited, write,
                            &write->helper);
}

int user_map_write(sd_event *event, const UserMap *map, pid_t pid, user_map_written_t callback,
                   void *userdata, UserMapWrite **ret) {
        UserMapWrite *write;
        int r;

        if (!map->by_helper) {
                const char *detail = "";

                r = write_directly(map, pid, &detail);
                *ret = NULL;
                callback(r, detail, userdata);
                return 0;
        }

        write = calloc(1, sizeof(*write));
        if (!write)
                return -ENOMEM;
        write->event = sd_event_ref(event);
        write->copy = *map;
        write->pid = pid;
        write->gids_left = true;
        write->callback = callback;
        write->userdata = userdata;
        r = start_helper(write);
        if (r < 0) {
                (void) user_map_write_free(write);
                return r;
        }
        *ret = write;
        return 0;
}
