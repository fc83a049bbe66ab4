/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a command line to the a{sv} that goes over the bus, by table: the message is printed as text and
 * compared. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "client/output.h"
#include "client/spec-args.h"
#include "util/cleanup.h"
#include "util/strv.h"

/* Connected to nobody: sd-bus makes no message without a bus. */
static sd_bus *make_bus(int *ret_peer) {
        int pair[2];
        sd_bus *bus;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        assert_true(sd_bus_new(&bus) >= 0);
        assert_true(sd_bus_set_fd(bus, pair[0], pair[0]) >= 0);
        assert_true(sd_bus_start(bus) >= 0);
        *ret_peer = pair[1];
        return bus;
}

/* argv from one line, split at spaces. */
static char **split(const char *line) {
        char *copy, *rest, *word, **argv = NULL;

        rest = copy = strdup(line);
        assert_non_null(copy);
        while ((word = strsep(&rest, " ")))
                assert_int_equal(strv_append(&argv, word), 0);
        free(copy);
        return argv;
}

static char *spec_text(SpecArgsVerb verb, const char *line, bool terminal) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_bus_message_ sd_bus_message *message = NULL;
        _cleanup_spec_args_ SpecArgs args = {};
        _cleanup_fd_ int peer = -EBADF;
        _cleanup_strv_ char **argv = split(line);
        Globals globals = {};
        sd_bus *bus = make_bus(&peer);
        char *text = NULL;
        size_t size;
        FILE *file;
        int r;

        r = spec_args_parse(verb, &globals, (int) strv_length(argv), argv, &args, &error);
        if (r < 0) {
                assert_non_null(error.message);
                text = strdup(error.message);
                assert_non_null(text);
        } else {
                assert_true(sd_bus_message_new_method_call(bus, &message, "a.b", "/", "a.b", "C") >= 0);
                assert_true(spec_args_append(&args, terminal, message) >= 0);
                assert_true(sd_bus_message_seal(message, 1, 0) >= 0);
                file = open_memstream(&text, &size);
                assert_non_null(file);
                assert_true(output_text_value(file, message) >= 0);
                assert_int_equal(fclose(file), 0);
        }
        (void) sd_bus_close_unref(bus);
        return text;
}

static void check(const char *line, const char *wanted) {
        _cleanup_free_ char *text = spec_text(SPEC_ARGS_RUN, line, false);

        assert_string_equal(text, wanted);
}

#define BASE "RootDirectory=/r Command=true"

static void test_options_become_keys(void **state) {
        static const struct {
                const char *line, *wanted;
        } cases[] = {
                { "run /r true", BASE },
                { "run /r -- true", BASE },
                { "run -- /r true", BASE },
                { "run web true", "RootDirectory=/var/lib/machines/web Command=true" },
                { "run /r ls -l --name x -- -t", "RootDirectory=/r Command=ls -l --name x -- -t" },
                { "run /r -- -strange", "RootDirectory=/r Command=-strange" },
                { "run -e A=b -e C= --env D=e=f /r true",
                  "RootDirectory=/r Command=true Environment=A=b C= D=e=f" },
                { "run -e BERTH_HAS -e BERTH_HAS_NOT /r true",
                  "RootDirectory=/r Command=true Environment=BERTH_HAS=this" },
                { "run -w /tmp -u 7:8 --group a,b --group c /r true",
                  BASE " WorkingDirectory=/tmp User=7:8 SupplementaryGroups=a b c" },
                { "run --hostname=h --ephemeral --read-only --network host /r true",
                  BASE " Hostname=h Ephemeral=yes ReadOnly=yes Network=host" },
                { "run --cap-add NET_ADMIN,sys_time --cap-drop ALL /r true",
                  BASE " AddCapabilities=NET_ADMIN sys_time DropCapabilities=ALL" },
                { "run --caps CHOWN /r true", BASE " Capabilities=CHOWN" },
                { "run --caps= /r true", BASE " Capabilities=" },
                { "run --no-new-privileges --seccomp unconfined /r true",
                  BASE " NoNewPrivileges=yes SeccompProfile=unconfined" },
                { "run --ulimit nofile=1024:2048 --ulimit core=unlimited /r true",
                  BASE " ResourceLimits=NOFILE=1024 2048 CORE=infinity infinity" },
                { "run --oom-score-adj=-5 --stop-signal INT /r true",
                  BASE " OOMScoreAdjust=-5 StopSignal=2" },
                { "run --start-timeout 1.5 --stop-timeout 0 /r true",
                  BASE " TimeoutStartUSec=1500000 TimeoutStopUSec=0" },
                { "run --memory 64M --pids-limit 10 --slice a.slice --rm /r true",
                  BASE " MemoryMax=67108864 TasksMax=10 Slice=a.slice AutoRemove=yes" },
                { "run -m infinity --tasks-max=-1 /r true", BASE " MemoryMax=infinity TasksMax=infinity" },
                { "run --annotation a=b=c --annotation d= /r true", BASE " Annotations=a=b=c d=''" },
                { "run -v /s:/d -v /s:/e:ro,nosuid /r true",
                  BASE " Mounts=/d bind /s rbind /e bind /s rbind rro nosuid" },
                { "run -v /a\\:b:/c /r true", BASE " Mounts=/c bind /a:b rbind" },
                { "run --mount type=tmpfs,dst=/t,size=1m,ro /r true",
                  BASE " Mounts=/t tmpfs tmpfs size=1m ro" },
                { "run --mount src=/s,target=/t,readonly /r true", BASE " Mounts=/t bind /s rbind rro" },
                { "run --mount source=/s,destination=/t,bind /r true", BASE " Mounts=/t bind /s bind" },
        };

        assert_int_equal(setenv("BERTH_HAS", "this", 1), 0);
        assert_int_equal(unsetenv("BERTH_HAS_NOT"), 0);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                check(cases[i].line, cases[i].wanted);
}

static void test_mistakes_are_told(void **state) {
        static const struct {
                const char *line, *part;
        } cases[] = {
                { "run", "which ROOT" },
                { "run /r", "which COMMAND" },
                { "run /r --", "which COMMAND" },
                { "run --nope /r true", "--nope" },
                { "run -Z /r true", "-Z" },
                { "run --rm=yes /r true", "--rm=yes" },
                { "run --name", "--name" },
                { "run -e =x /r true", "-e =x" },
                { "run -v /s /r true", "-v /s" },
                { "run -v /s:d /r true", "-v /s:d" },
                { "run -v s:/d /r true", "no named volumes" },
                { "run -v /s:/d:ro:x /r true", "-v /s:/d:ro:x" },
                { "run -v ./berth-not-there:/d /r true", "berth-not-there" },
                { "run --mount src=/s /r true", "dst=" },
                { "run --mount dst=/s /r true", "src=" },
                { "run --ulimit nofile /r true", "--ulimit nofile" },
                { "run --ulimit nofile=a /r true", "--ulimit nofile=a" },
                { "run --memory x /r true", "--memory x" },
                { "run --oom-score-adj 1001 /r true", "--oom-score-adj 1001" },
                { "run --stop-signal NO /r true", "--stop-signal NO" },
                { "run --annotation a /r true", "--annotation a" },
                { "run ./berth-not-there true", "berth-not-there" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = spec_text(SPEC_ARGS_RUN, cases[i].line, false);

                if (!strstr(text, cases[i].part))
                        fail_msg("%s: %s", cases[i].line, text);
        }
}

static void test_relative_root_is_made_absolute(void **state) {
        _cleanup_free_ char *text = NULL, *wanted = NULL, *here = NULL;

        here = getcwd(NULL, 0);
        assert_non_null(here);
        assert_true(asprintf(&wanted, "RootDirectory=%s Command=true", here) > 0);
        text = spec_text(SPEC_ARGS_CREATE, "create . true", false);
        assert_string_equal(text, wanted);
}

static void test_terminal_passes_its_kind_unless_told_otherwise(void **state) {
        _cleanup_free_ char *copied = NULL, *given = NULL;

        assert_int_equal(setenv("TERM", "vt220", 1), 0);
        assert_int_equal(setenv("COLORTERM", "truecolor", 1), 0);
        assert_int_equal(unsetenv("NO_COLOR"), 0);
        copied = spec_text(SPEC_ARGS_RUN, "run /r true", true);
        assert_string_equal(copied, BASE " Environment=TERM=vt220 COLORTERM=truecolor Terminal=yes");
        given = spec_text(SPEC_ARGS_RUN, "run -e TERM=dumb /r true", true);
        assert_string_equal(given, BASE " Environment=TERM=dumb COLORTERM=truecolor Terminal=yes");
}

static void test_global_options_are_taken_after_the_verb(void **state) {
        _cleanup_bus_error_ sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_spec_args_ SpecArgs args = {};
        _cleanup_strv_ char **argv = split(
                "run -t --direct -q --json=short -i --no-pager --name n -T /r a -q");
        Globals globals = {};

        assert_int_equal(
                spec_args_parse(SPEC_ARGS_RUN, &globals, (int) strv_length(argv), argv, &args, &error), 0);
        assert_true(globals.direct);
        assert_true(globals.quiet);
        assert_int_equal(globals.json, JSON_MODE_SHORT);
        assert_int_equal(args.terminal, 0);
        assert_string_equal(args.name, "n");
        assert_string_equal(args.command[1], "-q");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_options_become_keys),
                cmocka_unit_test(test_mistakes_are_told),
                cmocka_unit_test(test_relative_root_is_made_absolute),
                cmocka_unit_test(test_terminal_passes_its_kind_unless_told_otherwise),
                cmocka_unit_test(test_global_options_are_taken_after_the_verb),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
