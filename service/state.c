/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/spec.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/unit-name.h"

#define RECORD_MAX 4096U
#define RECORD_FORM "berth-container 1\nunit=%s\nend\n"

struct State {
        int fd; /* owned */
};

static int make_directory(const char *path) {
        _cleanup_free_ char *copy = NULL;

        copy = strdup(path);
        if (!copy)
                return -ENOMEM;
        for (char *p = strchr(copy + 1, '/'); p; p = strchr(p + 1, '/')) {
                *p = 0;
                if (mkdir(copy, 0755) < 0 && errno != EEXIST)
                        return -errno;
                *p = '/';
        }
        return mkdir(copy, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

int state_open(const char *path, State **ret) {
        _cleanup_(state_freep) State *state = NULL;
        int r;

        r = make_directory(path);
        if (r < 0)
                return r;
        state = calloc(1, sizeof(*state));
        if (!state)
                return -ENOMEM;
        state->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (state->fd < 0)
                return -errno;
        *ret = TAKE_PTR(state);
        return 0;
}

State *state_free(State *state) {
        if (!state)
                return NULL;
        (void) fd_close(state->fd);
        free(state);
        return NULL;
}

int state_save(State *state, const char *name, const char *unit) {
        _cleanup_free_ char *temporary = NULL, *text = NULL;
        _cleanup_fd_ int fd = -EBADF;
        int length, r;

        /* A dot first is no container's name, so that a half-written file is never taken for a record. */
        if (asprintf(&temporary, ".%s.tmp", name) < 0) {
                temporary = NULL;
                return -ENOMEM;
        }
        length = asprintf(&text, RECORD_FORM, unit);
        if (length < 0) {
                text = NULL;
                return -ENOMEM;
        }
        fd = openat(state->fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        r = fd_write_all(fd, text, (size_t) length);
        if (r >= 0 && renameat(state->fd, temporary, state->fd, name) < 0)
                r = -errno;
        if (r < 0)
                (void) unlinkat(state->fd, temporary, 0);
        return r;
}

void state_remove(State *state, const char *name) {
        (void) unlinkat(state->fd, name, 0);
}

/* The unit in a record's text, or NULL when it is not exactly what state_save() writes. */
static const char *read_unit(char *text, size_t size, const char *name) {
        _cleanup_free_ char *expected = NULL;
        char *unit, *end;

        if (strlen(text) != size)
                return NULL;
        unit = strstr(text, "\nunit=");
        if (!unit || strncmp(text, "berth-container 1\n", 18) != 0)
                return NULL;
        unit += 6;
        end = strchr(unit, '\n');
        if (!end || strcmp(end, "\nend\n") != 0)
                return NULL;
        *end = 0;
        if (unit_name_scope(name, &expected) < 0 || strcmp(unit, expected) != 0)
                return NULL;
        return unit;
}

/* A regular file of root's, or of the user's whom the service runs as. */
static bool is_ours(int fd, const char *name) {
        struct stat st;

        return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) >= 0 && S_ISREG(st.st_mode) &&
               st.st_uid == geteuid();
}

/* Whatever it is; a directory only when it is empty. */
static void remove_foreign(int fd, const char *name) {
        if (unlinkat(fd, name, 0) >= 0 || (errno == EISDIR && unlinkat(fd, name, AT_REMOVEDIR) >= 0))
                log_message(LOG_WARNING, "Record %s is not one of berth's, removed", name);
        else
                log_message(LOG_WARNING, "Record %s is not one of berth's, and cannot be removed: %m", name);
}

int state_foreach(State *state, state_record_t callback, void *userdata) {
        DIR *directory;
        int fd;

        fd = openat(state->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        directory = fdopendir(fd);
        if (!directory) {
                (void) fd_close(fd);
                return -ENOMEM;
        }
        for (struct dirent *entry; (entry = readdir(directory));) {
                _cleanup_free_ char *text = NULL;
                size_t size;
                const char *unit = NULL, *name = entry->d_name;

                if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
                        continue;
                if (spec_validate_name(name, NULL) >= 0 && is_ours(state->fd, name) &&
                    fd_read_file(state->fd, name, 1, RECORD_MAX, &text, &size) >= 0)
                        unit = read_unit(text, size, name);
                if (!unit) {
                        remove_foreign(state->fd, name);
                        continue;
                }
                callback(name, unit, userdata);
        }
        (void) closedir(directory);
        return 0;
}
