/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Users and groups as the root's /etc/passwd and /etc/group have them. The files are a stranger's:
 * regular files only, of a size within bounds, a line that isn't well formed is passed over. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define USERS_FILE_MAX (1U << 20)
#define USERS_GROUPS_MAX 65536U /* NGROUPS_MAX of the kernel */
#define USERS_TEXT_MAX 4096U

/* A line of passwd; the texts point into the file and are not terminated. */
typedef struct UsersEntry {
        const char *name, *home, *shell;
        size_t name_length, home_length, shell_length;
        uint32_t uid, gid;
} UsersEntry;

/* What a program is to run as. */
typedef struct User {
        uint32_t uid, gid;
        bool known; /* has a line in passwd: name, home and shell are from there */
        size_t n_groups;
        char detail[USERS_TEXT_MAX]; /* what users_resolve() has to say, beyond a name */
        char name[USERS_TEXT_MAX], home[USERS_TEXT_MAX], shell[USERS_TEXT_MAX];
        uint32_t groups[USERS_GROUPS_MAX];
} User;

/* What was asked for. */
typedef struct UsersRequest {
        const char *name; /* NULL: uid */
        uint32_t uid, gid;
        bool has_gid;        /* gid was given: it wins, and the user's groups aren't looked up */
        char *const *groups; /* NULL-terminated, names or numbers, beside the user's own */
} UsersRequest;

/* The first line for a name, or for a uid when name is NULL. */
bool users_find(const char *data, size_t size, const char *name, uint32_t uid, UsersEntry *ret);

/* The id of a group. */
bool users_find_group(const char *data, size_t size, const char *name, uint32_t *ret_gid);

/* Appends the groups that have this member to groups[*n], max in all. 0 or -E2BIG. */
int users_find_memberships(const char *data, size_t size, const char *member, uint32_t *groups, size_t *n,
                           size_t max);

/* Maps a copy of the file at path inside root. -ENOENT, -EINVAL when it is no regular file, -EFBIG. The
 * memory stays until the program is executed; an empty file has size 0. */
int users_read(int root, const char *path, const char **ret_data, size_t *ret_size);

/* Looks everything up; user is filled with zeros before. -ESRCH: no such user or group; -ENAMETOOLONG: the
 * line of a user given by name has too long a field, while one of a user given by number then counts as
 * absent. *ret_detail names the culprit on an error, borrowed from request or user. */
int users_resolve(int root, const UsersRequest *request, User *user, const char **ret_detail);
