/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The input is a small program that writes an a{sv}, which is then read as a spec or as options.
 *
 * Bytes that aren't messages at all are the library's business and would hardly ever come through to the
 * reader; this way every message is a well-formed one, with any value under any key. */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "service/spec-bus.h"
#include "tests/fuzz/fuzz.h"
#include "util/path.h"

static const char *const keys[][2] = {
        { "Command", "as" },
        { "Environment", "as" },
        { "WorkingDirectory", "s" },
        { "User", "s" },
        { "SupplementaryGroups", "as" },
        { "Hostname", "s" },
        { "Terminal", "b" },
        { "RootDirectory", "s" },
        { "ReadOnly", "b" },
        { "Ephemeral", "b" },
        { "Mounts", "a(sssas)" },
        { "Network", "s" },
        { "Capabilities", "as" },
        { "AddCapabilities", "as" },
        { "DropCapabilities", "as" },
        { "NoNewPrivileges", "b" },
        { "SeccompProfile", "s" },
        { "ResourceLimits", "a{s(tt)}" },
        { "OOMScoreAdjust", "i" },
        { "StopSignal", "i" },
        { "TimeoutStartUSec", "t" },
        { "TimeoutStopUSec", "t" },
        { "MemoryMax", "t" },
        { "TasksMax", "t" },
        { "Slice", "s" },
        { "AutoRemove", "b" },
        { "Annotations", "a{ss}" },
        { "Bundle", "s" },
        { "Devices", "as" },
        { "IPC", "s" },
        { "UserNamespace", "s" },
        { "Init", "b" },
        { "MemoryHigh", "t" },
        { "CPUWeight", "t" },
        { "Runtime", "s" },
        { "Rows", "q" },
        { "Columns", "q" },
        { "XPixels", "q" },
        { "YPixels", "q" },
        { "OnDisconnect", "s" },
        { "StandardInput", "s" },
        { "StandardInput", "h" },
        { "StandardOutput", "s" },
        { "StandardOutput", "h" },
        { "StandardError", "h" },
        { "Lease", "b" },
        { "FileDescriptors", "a(uh)" },
};

static const char *const signatures[] = { "s", "as", "b",     "i",     "t",        "q",
                                          "h", "v",  "a{sv}", "a{ss}", "a(sssas)", "ay" };

static const char *const words[] = {
        "/",      "true",        "A=b",         "host",   "private", "default",  "unconfined", "ALL",
        "KILL",   "tmpfs",       "bind",        "rbind",  "ro",      "rw",       "rro",        "noatime",
        "NOFILE", "RLIMIT_CORE", "1000",        "1000:5", "null",    "hangup",   "keep",       "kill",
        "pipe",   "journal",     "berth.slice", "",       "/a/../b", "size=64k", "native",     "path:/x",
};

typedef struct Input {
        const uint8_t *data;
        size_t size;
        sd_bus_message *message;
        int fd;
} Input;

static uint64_t next(Input *input, size_t bytes) {
        uint64_t value = 0;

        while (bytes-- > 0 && input->size > 0) {
                value = value << 8 | *input->data++;
                input->size--;
        }
        return value;
}

/* A length and as many characters, or from 0x80 on one of the words. */
static void append_text(Input *input) {
        uint8_t length = (uint8_t) next(input, 1);
        char text[128];
        size_t n = 0;

        if (length >= 0x80) {
                fuzz_assert(sd_bus_message_append(input->message, "s", words[length % ELEMENTSOF(words)]) >=
                            0);
                return;
        }
        while (n < length && input->size > 0) {
                text[n] = (char) (next(input, 1) & 0x7f);
                n += text[n] != 0;
        }
        text[n] = 0;
        fuzz_assert(sd_bus_message_append(input->message, "s", text) >= 0);
}

static size_t type_length(const char *signature) {
        size_t n = 0, depth = 0;

        while (signature[n] == 'a')
                n++;
        do {
                depth += strchr("({", signature[n]) != NULL;
                depth -= strchr(")}", signature[n]) != NULL;
                n++;
        } while (depth > 0);
        return n;
}

static void append(Input *input, const char *signature, unsigned depth);

static void append_all(Input *input, const char *signature, size_t n, unsigned depth) {
        for (const char *end = signature + n; signature < end; signature += type_length(signature))
                append(input, signature, depth);
}

static void append_container(Input *input, char type, const char *contents, size_t n, unsigned depth) {
        char copy[64] = {};

        memcpy(copy, contents, n);
        fuzz_assert(sd_bus_message_open_container(input->message, type, copy) >= 0);
        if (type != 'a')
                append_all(input, copy, n, depth);
        else
                for (uint8_t count = next(input, 1) % 8; count > 0 && input->size > 0; count--)
                        append_all(input, copy, n, depth);
        fuzz_assert(sd_bus_message_close_container(input->message) >= 0);
}

/* Appends one value of the first complete type of the signature. */
static void append(Input *input, const char *signature, unsigned depth) {
        const char *inner;

        switch (signature[0]) {
        case 's':
                append_text(input);
                break;
        case 'b':
                fuzz_assert(sd_bus_message_append(input->message, "b", (int) next(input, 1) & 1) >= 0);
                break;
        case 'y':
                fuzz_assert(sd_bus_message_append(input->message, "y", (int) next(input, 1)) >= 0);
                break;
        case 'q':
                fuzz_assert(sd_bus_message_append(input->message, "q", (int) next(input, 2)) >= 0);
                break;
        case 'i':
                fuzz_assert(sd_bus_message_append(input->message, "i", (int32_t) next(input, 4)) >= 0);
                break;
        case 'u':
                fuzz_assert(sd_bus_message_append(input->message, "u", (uint32_t) next(input, 4)) >= 0);
                break;
        case 't':
                fuzz_assert(sd_bus_message_append(input->message, "t", next(input, 8)) >= 0);
                break;
        case 'h':
                fuzz_assert(sd_bus_message_append(input->message, "h", input->fd) >= 0);
                break;
        case 'a':
                append_container(input, 'a', signature + 1, type_length(signature) - 1, depth + 1);
                break;
        case '(':
                append_container(input, 'r', signature + 1, type_length(signature) - 2, depth + 1);
                break;
        case '{':
                append_container(input, 'e', signature + 1, type_length(signature) - 2, depth + 1);
                break;
        case 'v':
                inner = signatures[next(input, 1) % ELEMENTSOF(signatures)];
                if (depth > 6)
                        inner = "b";
                append_container(input, 'v', inner, strlen(inner), depth + 1);
                break;
        default:
                abort();
        }
}

/* One entry: a number that chooses the key and, from the end of the table on, a key of its own or another
 * type. */
static void append_entry(Input *input) {
        uint8_t choice = (uint8_t) next(input, 1);
        const char *signature;

        fuzz_assert(sd_bus_message_open_container(input->message, 'e', "sv") >= 0);
        if (choice < ELEMENTSOF(keys)) {
                fuzz_assert(sd_bus_message_append(input->message, "s", keys[choice][0]) >= 0);
                signature = keys[choice][1];
        } else {
                if (choice & 1)
                        append_text(input);
                else
                        fuzz_assert(sd_bus_message_append(input->message, "s",
                                                          keys[next(input, 1) % ELEMENTSOF(keys)][0]) >= 0);
                signature = signatures[next(input, 1) % ELEMENTSOF(signatures)];
        }
        append_container(input, 'v', signature, strlen(signature), 0);
        fuzz_assert(sd_bus_message_close_container(input->message) >= 0);
}

static void check_spec(sd_bus_message *message) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_spec_ Spec *spec = NULL;
        int r;

        r = spec_bus_read(message, &spec, &error);
        fuzz_assert(r <= 0);
        fuzz_assert((r < 0) == (sd_bus_error_is_set(&error) > 0));
        fuzz_assert((r < 0) == !spec);
        if (!spec)
                return;
        fuzz_assert(spec_validate(spec, NULL) == 0);
        fuzz_assert(spec->root_directory[0] == '/' && !path_has_parent(spec->root_directory));
        fuzz_assert(spec->command[0][0]);
        fuzz_assert(spec->stop_signal >= 1 && spec->stop_signal <= 64);
        fuzz_assert(spec->resources.values[RESOURCE_MEMORY_MAX] > 0 &&
                    spec->resources.values[RESOURCE_TASKS_MAX] > 0 && spec->timeout_start_usec > 0);
        for (size_t i = 0; i < RLIM_NLIMITS; i++)
                fuzz_assert(spec->limits[i].rlim_cur <= spec->limits[i].rlim_max);
}

static void check_options(sd_bus_message *message, int fd) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        StartOptions options = START_OPTIONS_INIT;
        int free_before, free_after, r;

        free_before = fd_dup(fd);
        fd_close(free_before);
        r = options_bus_read(message, &options, &error);
        fuzz_assert(r <= 0);
        fuzz_assert((r < 0) == (sd_bus_error_is_set(&error) > 0));
        options_done(&options);
        free_after = fd_dup(fd);
        fd_close(free_after);
        fuzz_assert(free_before == free_after);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static sd_bus *bus;
        static int pair[2], null = -1;
        _cleanup_bus_message_ sd_bus_message *message = NULL;
        Input input = { .data = data, .size = size };
        bool as_options;

        if (!bus) {
                fuzz_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
                null = open("/dev/null", O_RDWR | O_CLOEXEC);
                fuzz_assert(null >= 0);
                fuzz_assert(sd_bus_new(&bus) >= 0 && sd_bus_set_fd(bus, pair[0], pair[0]) >= 0);
                fuzz_assert(sd_bus_start(bus) >= 0);
        }
        fuzz_assert(sd_bus_message_new_method_call(bus, &message, NULL, "/", NULL, "X") >= 0);
        input.message = message;
        input.fd = null;
        as_options = next(&input, 1) & 1;
        fuzz_assert(sd_bus_message_open_container(message, 'a', "{sv}") >= 0);
        for (int i = 0; i < 60 && input.size > 0; i++)
                append_entry(&input);
        fuzz_assert(sd_bus_message_close_container(message) >= 0);
        fuzz_assert(sd_bus_message_seal(message, 1, 0) >= 0 && sd_bus_message_rewind(message, 1) >= 0);
        if (as_options)
                check_options(message, null);
        else
                check_spec(message);
        return 0;
}
