/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/launch/users.h"

#include "service/launch/path.h"
#include "service/launch/sys.h"
#include "service/launch/text.h"

#define FIELDS_MAX 7
#define ID_MAX 0xfffffffeU /* the last one means "no id" to every call that takes one */

typedef struct Field {
        const char *text;
        size_t length;
} Field;

/* Splits the line at *at into fields, and moves *at to the next one. Returns how many it has, 0 for a
 * line that can't be used, -1 at the end. */
static int next_line(const char **at, const char *end, Field *fields) {
        const char *p = *at;
        bool bad = false;
        int n = 0;

        if (p == end)
                return -1;
        if (*p == '#')
                bad = true;
        for (const char *start = p;; p++) {
                if (p < end && *p == 0)
                        bad = true;
                if (p < end && *p != ':' && *p != '\n')
                        continue;
                if (n < FIELDS_MAX)
                        fields[n] = (Field) { start, (size_t) (p - start) };
                n++;
                start = p + 1;
                if (p == end || *p == '\n')
                        break;
        }
        *at = p == end ? end : p + 1;
        return bad || n > FIELDS_MAX ? 0 : n;
}

static bool field_is(const Field *field, const char *text) {
        for (size_t i = 0; i < field->length; i++)
                if (field->text[i] != text[i]) /* a NUL of text ends it: fields have none */
                        return false;
        return !text[field->length];
}

static bool field_id(const Field *field, uint32_t *ret) {
        uint64_t value;

        if (!text_parse_number(field->text, field->length, ID_MAX, &value))
                return false;
        *ret = (uint32_t) value;
        return true;
}

bool users_find(const char *data, size_t size, const char *name, uint32_t uid, UsersEntry *ret) {
        const char *at = data, *end = data + size;
        Field fields[FIELDS_MAX];
        int n;

        while ((n = next_line(&at, end, fields)) >= 0) {
                UsersEntry entry;

                if (n != 7 || fields[0].length == 0 || !field_id(fields + 2, &entry.uid) ||
                    !field_id(fields + 3, &entry.gid))
                        continue;
                if (name ? !field_is(fields, name) : entry.uid != uid)
                        continue;
                entry.name = fields[0].text;
                entry.name_length = fields[0].length;
                entry.home = fields[5].text;
                entry.home_length = fields[5].length;
                entry.shell = fields[6].text;
                entry.shell_length = fields[6].length;
                *ret = entry;
                return true;
        }
        return false;
}

bool users_find_group(const char *data, size_t size, const char *name, uint32_t *ret_gid) {
        const char *at = data, *end = data + size;
        Field fields[FIELDS_MAX];
        uint32_t gid;
        int n;

        while ((n = next_line(&at, end, fields)) >= 0)
                if (n == 4 && fields[0].length > 0 && field_is(fields, name) && field_id(fields + 2, &gid)) {
                        *ret_gid = gid;
                        return true;
                }
        return false;
}

static bool has_member(const Field *members, const char *member) {
        const char *p = members->text, *end = p + members->length;

        while (p < end) {
                Field one = { p, 0 };

                while (p < end && *p != ',')
                        p++;
                one.length = (size_t) (p - one.text);
                if (one.length > 0 && field_is(&one, member))
                        return true;
                p++;
        }
        return false;
}

static int add_group(uint32_t gid, uint32_t *groups, size_t *n, size_t max) {
        for (size_t i = 0; i < *n; i++)
                if (groups[i] == gid)
                        return 0;
        if (*n >= max)
                return -E2BIG;
        groups[(*n)++] = gid;
        return 0;
}

int users_find_memberships(const char *data, size_t size, const char *member, uint32_t *groups, size_t *n,
                           size_t max) {
        const char *at = data, *end = data + size;
        Field fields[FIELDS_MAX];
        uint32_t gid;
        int k, r;

        while ((k = next_line(&at, end, fields)) >= 0) {
                if (k != 4 || !field_id(fields + 2, &gid) || !has_member(fields + 3, member))
                        continue;
                r = add_group(gid, groups, n, max);
                if (r < 0)
                        return r;
        }
        return 0;
}

int users_read(int root, const char *path, const char **ret_data, size_t *ret_size) {
        _cleanup_close_ int look = -EBADF, fd = -EBADF;
        struct statx seen, st;
        size_t size = 0;
        char *data;
        int r;

        /* A look first: to open a device node can be an action of its own. */
        look = path_open(root, path, O_PATH, 0);
        if (look < 0)
                return look;
        r = sys_statx(look, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &seen);
        if (r < 0)
                return r;
        if (!S_ISREG(seen.stx_mode))
                return -EINVAL;
        fd = path_open(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
        if (fd < 0)
                return fd;
        r = sys_statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st);
        if (r < 0)
                return r;
        if (!S_ISREG(st.stx_mode) || st.stx_ino != seen.stx_ino || st.stx_dev_major != seen.stx_dev_major ||
            st.stx_dev_minor != seen.stx_dev_minor)
                return -EINVAL;
        if (st.stx_size > USERS_FILE_MAX)
                return -EFBIG;

        /* A copy, not the file: somebody may cut it off while it is read. */
        data = sys_allocate(USERS_FILE_MAX);
        if (sys_is_error(data))
                return (int) (long) data;
        while (size < USERS_FILE_MAX) {
                long n;

                n = sys_read(fd, data + size, USERS_FILE_MAX - size);
                if (n == -EINTR)
                        continue;
                if (n < 0)
                        return (int) n;
                if (n == 0)
                        break;
                size += (size_t) n;
        }
        *ret_data = data;
        *ret_size = size;
        return 0;
}

/* Without the file there is nobody in it. */
static int read_optional(int root, const char *path, const char **ret_data, size_t *ret_size) {
        int r;

        r = users_read(root, path, ret_data, ret_size);
        if (r == -ENOENT || r == -ENOTDIR) {
                *ret_data = "";
                *ret_size = 0;
                return 0;
        }
        return r;
}

/* The field of an entry that there is no room for, or NULL. */
static const char *find_too_long(const UsersEntry *entry) {
        if (entry->name_length >= USERS_TEXT_MAX)
                return "name";
        if (entry->home_length >= USERS_TEXT_MAX)
                return "home";
        if (entry->shell_length >= USERS_TEXT_MAX)
                return "shell";
        return NULL;
}

static void copy_text(const char *text, size_t length, const char *otherwise,
                      char ret[static USERS_TEXT_MAX]) {
        if (length == 0) {
                (void) text_append(ret, ret + USERS_TEXT_MAX, otherwise);
                return;
        }
        __builtin_memcpy(ret, text, length);
        ret[length] = 0;
}

static void describe_too_long(User *user, const char *field, const char *name) {
        const char *end = user->detail + sizeof(user->detail);
        char *to;

        to = text_append(user->detail, end, "/etc/passwd: ");
        to = text_append(to, end, field);
        to = text_append(to, end, " of ");
        to = text_append(to, end, name);
        (void) text_append(to, end, " is too long");
}

static int fill_from_passwd(int root, const UsersRequest *request, User *user, const char **ret_detail) {
        const char *data, *field;
        UsersEntry entry;
        size_t size;
        int r;

        r = read_optional(root, "/etc/passwd", &data, &size);
        /* For a number it is only about HOME, USER and SHELL: what can't be used isn't there. */
        if (r < 0 && !request->name)
                return 0;
        if (r < 0)
                return r;
        if (!users_find(data, size, request->name, request->uid, &entry))
                return request->name ? -ESRCH : 0;
        field = find_too_long(&entry);
        if (field && !request->name)
                return 0;
        if (field) {
                describe_too_long(user, field, request->name);
                *ret_detail = user->detail;
                return -ENAMETOOLONG;
        }
        user->uid = entry.uid;
        if (request->name && !request->has_gid)
                user->gid = entry.gid;
        copy_text(entry.name, entry.name_length, "", user->name);
        copy_text(entry.home, entry.home_length, "/", user->home);
        copy_text(entry.shell, entry.shell_length, "/bin/sh", user->shell);
        user->known = true;
        return 0;
}

static bool is_number(const char *text) {
        for (const char *p = text; *p; p++)
                if (*p < '0' || *p > '9')
                        return false;
        return *text;
}

static int fill_groups(int root, const UsersRequest *request, User *user, const char **ret_detail) {
        const char *data = NULL;
        size_t size = 0;
        int r;

        if (request->name && !request->has_gid) {
                r = read_optional(root, "/etc/group", &data, &size);
                if (r < 0)
                        return r;
                (void) add_group(user->gid, user->groups, &user->n_groups, USERS_GROUPS_MAX);
                r = users_find_memberships(data, size, request->name, user->groups, &user->n_groups,
                                           USERS_GROUPS_MAX);
                if (r < 0)
                        return r;
        }
        for (char *const *group = request->groups; group && *group; group++) {
                uint64_t number;
                uint32_t gid;

                *ret_detail = *group;
                if (is_number(*group)) {
                        if (!text_parse_number(*group, text_length(*group), ID_MAX, &number))
                                return -EINVAL;
                        gid = (uint32_t) number;
                } else {
                        if (!data) {
                                r = read_optional(root, "/etc/group", &data, &size);
                                if (r < 0)
                                        return r;
                        }
                        if (!users_find_group(data, size, *group, &gid))
                                return -ESRCH;
                }
                r = add_group(gid, user->groups, &user->n_groups, USERS_GROUPS_MAX);
                if (r < 0)
                        return r;
        }
        return 0;
}

int users_resolve(int root, const UsersRequest *request, User *user, const char **ret_detail) {
        int r;

        *ret_detail = request->name ? request->name : "user id";
        if (!request->name && request->uid > ID_MAX)
                return -EINVAL;
        if (request->has_gid && request->gid > ID_MAX)
                return -EINVAL;
        user->uid = request->uid;
        user->gid = request->has_gid ? request->gid : 0;
        user->home[0] = '/';
        r = fill_from_passwd(root, request, user, ret_detail);
        if (r < 0)
                return r;
        return fill_groups(root, request, user, ret_detail);
}
