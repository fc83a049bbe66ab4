/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/bus-message.h"

#include <string.h>
#include <sys/socket.h>

#include "util/cleanup.h"

static sd_bus *bus_on(int fd, int server) {
        sd_bus *bus = NULL;

        assert_true(sd_bus_new(&bus) >= 0);
        assert_true(sd_bus_set_fd(bus, fd, fd) >= 0);
        if (server) {
                assert_true(sd_bus_set_server(bus, 1, (sd_id128_t) {}) >= 0);
                assert_true(sd_bus_set_anonymous(bus, 1) >= 0);
                assert_true(sd_bus_negotiate_fds(bus, 1) >= 0);
        }
        assert_true(sd_bus_start(bus) >= 0);
        return bus;
}

sd_bus *test_bus_new(int *ret_peer) {
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
        *ret_peer = pair[1];
        return bus_on(pair[0], 0);
}

sd_bus_message *test_message_new(sd_bus *bus) {
        sd_bus_message *message = NULL;

        assert_true(sd_bus_message_new_method_call(bus, &message, "org.berth1", "/org/berth1",
                                                   "org.berth1.Manager", "CreateContainer") >= 0);
        return message;
}

void test_message_seal(sd_bus_message *message) {
        assert_true(sd_bus_message_seal(message, 1, 0) >= 0);
        assert_true(sd_bus_message_rewind(message, 1) >= 0);
}

/* Marshalling by hand, in the byte order of this machine. */
typedef struct Wire {
        char data[4096];
        size_t n;
} Wire;

static void put(Wire *wire, const void *data, size_t size) {
        assert_true(wire->n + size <= sizeof(wire->data));
        memcpy(wire->data + wire->n, data, size);
        wire->n += size;
}

static void pad(Wire *wire, size_t to) {
        while (wire->n % to)
                put(wire, "", 1);
}

static void put_u32(Wire *wire, uint32_t value) {
        pad(wire, 4);
        put(wire, &value, 4);
}

static void put_field(Wire *wire, char code, char type, const char *text) {
        pad(wire, 8);
        put(wire, (char[]) { code, 1, type, 0 }, 4);
        if (type == 'g')
                put(wire, (char[]) { (char) strlen(text) }, 1);
        else
                put_u32(wire, (uint32_t) strlen(text));
        put(wire, text, strlen(text) + 1);
}

sd_bus_message *test_message_raw(const char *signature, const void *body, size_t size) {
        static const char handshake[] = "\0AUTH ANONYMOUS\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n";
        _cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
        _cleanup_fd_ int peer = -EBADF;
        sd_bus_message *message = NULL;
        Wire wire = {};
        uint32_t fields;
        int pair[2], r;

        put(&wire, (char[]) { __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 'l' : 'B', 1, 0, 1 }, 4);
        put_u32(&wire, (uint32_t) size);
        put_u32(&wire, 1);
        put_u32(&wire, 0);
        put_field(&wire, 1, 'o', "/org/berth1");
        put_field(&wire, 3, 's', "CreateContainer");
        put_field(&wire, 8, 'g', signature);
        fields = (uint32_t) wire.n - 16;
        memcpy(wire.data + 12, &fields, 4);
        pad(&wire, 8);
        put(&wire, body, size);

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
        peer = pair[1];
        bus = bus_on(pair[0], 1);
        assert_int_equal(fd_write_all(peer, handshake, sizeof(handshake) - 1), 0);
        assert_int_equal(fd_write_all(peer, wire.data, wire.n), 0);
        /* All of it is there, so nothing is waited for. */
        do
                r = sd_bus_process(bus, &message);
        while (r > 0 && !message);
        assert_true(r > 0);
        return message;
}
